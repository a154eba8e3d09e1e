// SPDX-License-Identifier: Apache-2.0

package gitops_test

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// fluxObjects returns one object of each kind, with these conditions.
func fluxObjects(observed int64, conditions ...metav1.Condition) map[string]client.Object {
	named := metav1.ObjectMeta{Namespace: "ns", Name: "x", Generation: 2}
	return map[string]client.Object{
		"HelmRelease": &helmv2.HelmRelease{
			ObjectMeta: named, Status: helmv2.HelmReleaseStatus{ObservedGeneration: observed, Conditions: conditions},
		},
		"Kustomization": &kustomizev1.Kustomization{
			ObjectMeta: named, Status: kustomizev1.KustomizationStatus{ObservedGeneration: observed, Conditions: conditions},
		},
		"OCIRepository": &sourcev1.OCIRepository{
			ObjectMeta: named, Status: sourcev1.OCIRepositoryStatus{ObservedGeneration: observed, Conditions: conditions},
		},
		"GitRepository": &sourcev1.GitRepository{
			ObjectMeta: named, Status: sourcev1.GitRepositoryStatus{ObservedGeneration: observed, Conditions: conditions},
		},
		"Bucket": &sourcev1.Bucket{
			ObjectMeta: named, Status: sourcev1.BucketStatus{ObservedGeneration: observed, Conditions: conditions},
		},
		"HelmRepository": &sourcev1.HelmRepository{
			ObjectMeta: named, Status: sourcev1.HelmRepositoryStatus{ObservedGeneration: observed, Conditions: conditions},
		},
	}
}

func TestFluxHealthOfAllKinds(t *testing.T) {
	for kind, obj := range fluxObjects(2, condition("Ready", metav1.ConditionTrue, "Succeeded", 2)) {
		NewWithT(t).Expect(gitops.FluxHealth(obj)).To(Equal(gitops.Health{Ready: true, Reason: providerv1.ReasonReady}), kind)
	}
	for kind, obj := range fluxObjects(2, condition("Ready", metav1.ConditionFalse, "Broken", 2)) {
		NewWithT(t).Expect(gitops.FluxHealth(obj)).To(Equal(gitops.Health{
			Reason: providerv1.ReasonFluxFailed, Message: kind + " ns/x: Broken: in its words",
		}))
	}
	for kind, obj := range fluxObjects(0) {
		health := gitops.FluxHealth(obj)
		NewWithT(t).Expect(health.Ready).To(BeFalse(), kind)
		NewWithT(t).Expect(health.Message).To(ContainSubstring("is Flux running?"), kind)
	}
	foreign := gitops.FluxHealth(&corev1.ConfigMap{})
	NewWithT(t).Expect(foreign.Ready).To(BeFalse())
	NewWithT(t).Expect(foreign.Reason).To(Equal(providerv1.ReasonInternalError))
}

// TestRoutine tells Flux's look at every interval from work on a change.
func TestRoutine(t *testing.T) {
	unknown := func(generation int64) metav1.Condition {
		return condition("Ready", metav1.ConditionUnknown, "Progressing", generation)
	}
	for kind, obj := range fluxObjects(2, unknown(2)) {
		NewWithT(t).Expect(gitops.FluxHealth(obj).Routine).To(BeTrue(), kind)
	}
	for _, objs := range []map[string]client.Object{
		fluxObjects(1, unknown(1)), fluxObjects(1, unknown(2)), fluxObjects(2, unknown(1)), fluxObjects(-1, unknown(2)),
		fluxObjects(2, condition("Ready", metav1.ConditionFalse, "Broken", 2)), fluxObjects(2),
	} {
		for kind, obj := range objs {
			NewWithT(t).Expect(gitops.FluxHealth(obj).Routine).To(BeFalse(), kind)
		}
	}
}
