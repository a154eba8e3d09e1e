// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Prune deletes the objects of the given kinds that match the selector and are not wanted any more, and returns those
// that are not gone yet. The selector must match nothing but our own objects. A nil keep keeps nothing.
func (a *Applier) Prune(ctx context.Context, kinds []client.ObjectList, selector labels.Selector,
	keep func(client.Object) bool,
) ([]client.Object, error) {
	if selector == nil || selector.Empty() {
		return nil, fmt.Errorf("prune: refused without a selector")
	}
	var left []client.Object
	for _, kind := range kinds {
		list, _ := kind.DeepCopyObject().(client.ObjectList)
		if err := a.client.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return nil, fmt.Errorf("list %T: %w", kind, err)
		}
		items, err := apimeta.ExtractList(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			obj, ok := item.(client.Object)
			if !ok || (keep != nil && keep(obj)) {
				continue
			}
			if err := a.Delete(ctx, obj); err != nil {
				return nil, err
			}
			left = append(left, obj)
		}
	}
	return left, nil
}

// Delete deletes an object, unless it is gone or going already.
func (a *Applier) Delete(ctx context.Context, obj client.Object) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	gvk, err := a.client.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(obj)
	var preconditions []client.DeleteOption
	if uid := obj.GetUID(); uid != "" {
		preconditions = append(preconditions, client.Preconditions{UID: &uid})
	}
	if err := a.client.Delete(ctx, obj, preconditions...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s: %w", gvk.Kind, key, err)
	}
	a.forget(identity{gvk, key})
	return nil
}
