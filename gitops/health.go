// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// Health is what the status of an object says about it.
type Health struct {
	// Ready says that the object is as its current spec asks.
	Ready bool

	// Reason is one of the reasons of a ProviderConfig in api/v1alpha1.
	Reason string

	// Message names the object and says, in the words of its controller, why it is not ready.
	Message string

	// Routine says that Flux only looks again, as it does at each interval, at an object that it has worked through
	// before: one that was ready still is, until Flux says otherwise.
	Routine bool
}

// fluxState is what FluxHealth needs of any Flux object.
type fluxState struct {
	kind       string
	suspended  bool
	observed   int64
	conditions []metav1.Condition
	static     bool
}

// FluxHealth reads a HelmRelease, a Kustomization or a source, by the rules of Flux: an object is ready when its Ready
// condition is True for the current generation. A HelmRepository of type oci has no status and is always ready.
func FluxHealth(obj client.Object) Health {
	s, known := fluxStateOf(obj)
	name := fmt.Sprintf("%s %s/%s", s.kind, obj.GetNamespace(), obj.GetName())
	switch {
	case !known:
		return Health{Reason: providerv1.ReasonInternalError, Message: name + " is of a kind that Flux does not have"}
	case obj.GetDeletionTimestamp() != nil:
		return Health{Reason: providerv1.ReasonUninstalling, Message: name + " is being deleted"}
	case s.suspended:
		return Health{Reason: providerv1.ReasonSuspended, Message: name + " is suspended: set spec.suspend to false to go on"}
	case s.static:
		return Health{Ready: true, Reason: providerv1.ReasonReady}
	}
	return s.health(name, obj.GetGeneration())
}

// health reads the conditions of a Flux object that works on its current spec, or will.
func (s fluxState) health(name string, generation int64) Health {
	if c := apimeta.FindStatusCondition(s.conditions, meta.StalledCondition); c != nil && c.Status == metav1.ConditionTrue {
		return Health{Reason: providerv1.ReasonFluxStalled, Message: fmt.Sprintf("%s has given up (%s): %s", name, c.Reason, c.Message)}
	}
	ready := apimeta.FindStatusCondition(s.conditions, meta.ReadyCondition)
	if ready == nil {
		return Health{Reason: providerv1.ReasonProgressing, Message: name + " has no Ready condition yet: is Flux running?"}
	}
	current := ready.ObservedGeneration == generation
	if ready.Status == metav1.ConditionTrue && current && s.observed == generation {
		return Health{Ready: true, Reason: providerv1.ReasonReady}
	}
	if ready.Status == metav1.ConditionFalse && current && ready.Reason != meta.DependencyNotReadyReason {
		return Health{Reason: providerv1.ReasonFluxFailed, Message: fmt.Sprintf("%s: %s: %s", name, ready.Reason, ready.Message)}
	}
	return Health{
		Reason: providerv1.ReasonProgressing, Message: fmt.Sprintf("%s is being reconciled: %s", name, ready.Message),
		Routine: current && s.observed == generation,
	}
}

// fluxStateOf reads the fields that all kinds of Flux have, each in a type of its own.
func fluxStateOf(obj client.Object) (fluxState, bool) {
	switch o := obj.(type) {
	case *helmv2.HelmRelease:
		return fluxState{helmv2.HelmReleaseKind, o.Spec.Suspend, o.Status.ObservedGeneration, o.Status.Conditions, false}, true
	case *kustomizev1.Kustomization:
		return fluxState{kustomizev1.KustomizationKind, o.Spec.Suspend, o.Status.ObservedGeneration, o.Status.Conditions, false}, true
	case *sourcev1.OCIRepository:
		return fluxState{sourcev1.OCIRepositoryKind, o.Spec.Suspend, o.Status.ObservedGeneration, o.Status.Conditions, false}, true
	case *sourcev1.GitRepository:
		return fluxState{sourcev1.GitRepositoryKind, o.Spec.Suspend, o.Status.ObservedGeneration, o.Status.Conditions, false}, true
	case *sourcev1.Bucket:
		return fluxState{sourcev1.BucketKind, o.Spec.Suspend, o.Status.ObservedGeneration, o.Status.Conditions, false}, true
	case *sourcev1.HelmRepository:
		static := o.Spec.Type == sourcev1.HelmRepositoryTypeOCI
		return fluxState{sourcev1.HelmRepositoryKind, o.Spec.Suspend, o.Status.ObservedGeneration, o.Status.Conditions, static}, true
	default:
		return fluxState{}, false
	}
}

// ProviderHealth reads a provider object of the CAPI Operator the strict way: its Ready condition only mirrors a
// Deployment, and stays True when an upgrade fails. So it is healthy when the operator has worked through the current
// generation, the wanted version is installed, the checks before and the installation succeeded, no upgrade failed, and
// the Deployment is available.
func ProviderHealth(obj operatorv1.GenericProvider, version string) Health {
	status := obj.GetStatus()
	name := fmt.Sprintf("%s provider %s", obj.GetType(), obj.GetName())
	if obj.GetDeletionTimestamp() != nil {
		return Health{Reason: providerv1.ReasonUninstalling, Message: name + " is being deleted"}
	}
	for _, kind := range []string{
		operatorv1.PreflightCheckCondition, operatorv1.ProviderInstalledCondition, operatorv1.ProviderUpgradedCondition,
	} {
		c := apimeta.FindStatusCondition(status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		message := fmt.Sprintf("%s: %s: %s", name, c.Reason, c.Message)
		if c.Reason == operatorv1.WaitingForCoreProviderReadyReason {
			return Health{Reason: providerv1.ReasonProgressing, Message: message}
		}
		return Health{Reason: providerv1.ReasonProviderFailed, Message: message}
	}
	if obj.GetSpec().Version != version || status.ObservedGeneration != obj.GetGeneration() ||
		status.InstalledVersion == nil || *status.InstalledVersion != version {
		return Health{Reason: providerv1.ReasonProgressing, Message: fmt.Sprintf("%s: version %s is being installed", name, version)}
	}
	return providerConditionsHealth(name, status.Conditions)
}

// providerConditionsHealth reads the conditions of a provider whose wanted version is installed.
func providerConditionsHealth(name string, conditions []metav1.Condition) Health {
	for _, kind := range []string{
		operatorv1.PreflightCheckCondition, operatorv1.ProviderInstalledCondition, meta.ReadyCondition,
	} {
		c := apimeta.FindStatusCondition(conditions, kind)
		if c == nil {
			return Health{Reason: providerv1.ReasonProgressing, Message: fmt.Sprintf("%s: condition %s is not reported yet", name, kind)}
		}
		if c.Status != metav1.ConditionTrue {
			return Health{Reason: providerv1.ReasonProgressing, Message: fmt.Sprintf("%s: %s: %s", name, c.Reason, c.Message)}
		}
	}
	return Health{Ready: true, Reason: providerv1.ReasonReady}
}
