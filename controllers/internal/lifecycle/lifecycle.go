// SPDX-License-Identifier: Apache-2.0

// Package lifecycle has what all controllers do with the metadata of the object that they reconcile: OpenControlPlane's
// operation annotation, and finalizers. Each write is a patch of its own that fails when somebody else was faster, so
// that the next reconciliation sees the newest object.
package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openmcp-project/openmcp-operator/api/constants"
)

// Operation is what the operation annotation of an object asks for.
type Operation string

// The operations.
const (
	// None: there is no annotation, or one that means nothing.
	None Operation = ""

	// Ignore: the object must be left alone.
	Ignore Operation = constants.OperationAnnotationValueIgnore

	// Reconcile: the object must be reconciled now, without shortcuts.
	Reconcile Operation = constants.OperationAnnotationValueReconcile
)

// TakeOperation returns what the operation annotation of obj asks for, and removes a request to reconcile.
func TakeOperation(ctx context.Context, c client.Client, obj client.Object) (Operation, error) {
	switch op := Operation(obj.GetAnnotations()[constants.OperationAnnotation]); op {
	case Ignore:
		return Ignore, nil
	case Reconcile:
		return Reconcile, patch(ctx, c, obj, func() {
			annotations := obj.GetAnnotations()
			delete(annotations, constants.OperationAnnotation)
			obj.SetAnnotations(annotations)
		})
	default:
		return None, nil
	}
}

// AddFinalizer adds a finalizer to obj unless it has it. What else of the metadata is to be changed with it, in the same
// write, is done by the functions in along.
func AddFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string, along ...func()) error {
	if controllerutil.ContainsFinalizer(obj, finalizer) {
		return nil
	}
	return patch(ctx, c, obj, func() {
		controllerutil.AddFinalizer(obj, finalizer)
		for _, change := range along {
			change()
		}
	})
}

// RemoveFinalizer removes a finalizer from obj if it has it. An object that is gone is no error.
func RemoveFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) error {
	if !controllerutil.ContainsFinalizer(obj, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(patch(ctx, c, obj, func() { controllerutil.RemoveFinalizer(obj, finalizer) }))
}

// ForeignFinalizers returns the finalizers of obj besides our own, sorted.
func ForeignFinalizers(obj client.Object, own string) []string {
	foreign := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == own })
	slices.Sort(foreign)
	return foreign
}

// patch changes the metadata of obj, in memory and on the cluster.
func patch(ctx context.Context, c client.Client, obj client.Object, change func()) error {
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", obj)
	}
	change()
	if err := c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch metadata of %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
