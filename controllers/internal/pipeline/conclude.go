// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// Runner writes what became of the steps of one kind of object.
type Runner[O client.Object] struct {
	// Client writes the status.
	Client client.Client

	// Recorder records the events.
	Recorder events.EventRecorder

	// Status returns the common part of an object's status.
	Status func(O) *commonapi.Status

	// MirrorPrefix is the prefix of the types of mirrored conditions; empty when there are none.
	MirrorPrefix string

	// Phase returns the phase of an object. The default is OpenControlPlane's: Terminating, Ready or Progressing.
	Phase func(obj O, ready bool) string
}

// Conclude writes conditions, phase and observedGeneration of obj, and whatever else of its status the steps have set
// in memory, if anything differs from before; records an event for each condition that changed; and returns what
// Reconcile returns. The object may be gone by then.
func (r Runner[O]) Conclude(ctx context.Context, obj, before O, result Result) (ctrl.Result, error) {
	status := r.Status(obj)
	old := r.Status(before).Conditions
	generation := obj.GetGeneration()
	status.ObservedGeneration = generation
	for _, c := range append(result.conditions, result.mirrored...) {
		c.ObservedGeneration = generation
		apimeta.SetStatusCondition(&status.Conditions, c)
	}
	for _, c := range result.pending(status.Conditions) {
		apimeta.SetStatusCondition(&status.Conditions, c)
	}
	r.dropStaleMirrors(status, result)
	if obj.GetDeletionTimestamp() != nil {
		keepOwned(status, result.owned)
	}
	counted := slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool {
		return result.advisory[c.Type] || c.Type == providerv1.ReadyCondition
	})
	summary := summarize(counted, result.owned)
	summary.ObservedGeneration = generation
	apimeta.SetStatusCondition(&status.Conditions, summary)
	status.Phase = r.phase(obj, summary.Status == metav1.ConditionTrue && allTrue(counted))

	if !equality.Semantic.DeepEqual(obj, before) {
		if err := r.Client.Status().Patch(ctx, obj, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("write status: %w", err)
		} else if !apierrors.IsNotFound(err) {
			r.record(obj, old, status.Conditions)
		}
	}
	if result.err != nil {
		return ctrl.Result{}, result.err
	}
	return ctrl.Result{RequeueAfter: result.after}, nil
}

// keepOwned removes the conditions that say how far an object was that is being deleted now: nobody keeps them current.
func keepOwned(status *commonapi.Status, owned []string) {
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
		return c.Type != providerv1.ReadyCondition && !slices.Contains(owned, c.Type)
	})
}

// dropStaleMirrors removes mirrored conditions whose origin is gone, once their step has been reached.
func (r Runner[O]) dropStaleMirrors(status *commonapi.Status, result Result) {
	if r.MirrorPrefix == "" || len(result.mirrored) == 0 {
		return
	}
	current := map[string]bool{}
	for _, c := range result.mirrored {
		current[c.Type] = true
	}
	for _, c := range append([]metav1.Condition(nil), status.Conditions...) {
		if strings.HasPrefix(c.Type, r.MirrorPrefix) && !current[c.Type] {
			apimeta.RemoveStatusCondition(&status.Conditions, c.Type)
		}
	}
}

// summarize returns the Ready condition: the first condition of the steps, in their order, that is not True speaks for
// all.
func summarize(conditions []metav1.Condition, order []string) metav1.Condition {
	for _, kind := range order {
		c := apimeta.FindStatusCondition(conditions, kind)
		if c != nil && c.Status != metav1.ConditionTrue {
			return metav1.Condition{
				Type: providerv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: c.Reason,
				Message: shorten(fmt.Sprintf("%s: %s", c.Type, c.Message)),
			}
		}
	}
	return metav1.Condition{
		Type: providerv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: providerv1.ReasonReady, Message: "all is well",
	}
}

func allTrue(conditions []metav1.Condition) bool {
	for _, c := range conditions {
		if c.Status != metav1.ConditionTrue {
			return false
		}
	}
	return true
}

func (r Runner[O]) phase(obj O, ready bool) string {
	switch {
	case r.Phase != nil:
		return r.Phase(obj, ready)
	case obj.GetDeletionTimestamp() != nil:
		return commonapi.StatusPhaseTerminating
	case ready:
		return commonapi.StatusPhaseReady
	default:
		return commonapi.StatusPhaseProgressing
	}
}

// record records an event for each condition whose status changed, or whose reason changed while it is not True. A new
// condition that waits for its turn is no news.
func (r Runner[O]) record(obj O, old, current []metav1.Condition) {
	for _, c := range current {
		before := apimeta.FindStatusCondition(old, c.Type)
		switch {
		case c.Status == metav1.ConditionUnknown && before == nil:
			continue
		case before != nil && before.Status == c.Status && (c.Status == metav1.ConditionTrue || before.Reason == c.Reason):
			continue
		}
		kind := corev1.EventTypeNormal
		if isTrouble(c) {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(obj, nil, kind, c.Reason, "Reconcile", "%s is %s: %s", c.Type, c.Status, c.Message)
	}
}

// isTrouble says whether a condition needs somebody's attention, rather than patience.
func isTrouble(c metav1.Condition) bool {
	if c.Status != metav1.ConditionFalse {
		return false
	}
	switch c.Reason {
	case providerv1.ReasonProgressing, providerv1.ReasonPending, providerv1.ReasonUninstalling, providerv1.ReasonDeleting,
		providerv1.ReasonConditionMissing, providerv1.ReasonClusterNotReady, providerv1.ReasonProvidersNotReady,
		providerv1.ReasonWebhookNotReady, providerv1.ReasonWaitingForFinalizers, providerv1.ReasonSuspended:
		return false
	}
	return true
}
