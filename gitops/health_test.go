// SPDX-License-Identifier: Apache-2.0

package gitops_test

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

func condition(kind string, status metav1.ConditionStatus, reason string, generation int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "in its words", ObservedGeneration: generation}
}

func TestFluxHealth(t *testing.T) {
	release := func(observed int64, conditions ...metav1.Condition) *helmv2.HelmRelease {
		return &helmv2.HelmRelease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", Generation: 2},
			Status:     helmv2.HelmReleaseStatus{ObservedGeneration: observed, Conditions: conditions},
		}
	}
	suspended := release(2, condition("Ready", metav1.ConditionTrue, "Succeeded", 2))
	suspended.Spec.Suspend = true
	going := release(2, condition("Ready", metav1.ConditionTrue, "Succeeded", 2))
	going.DeletionTimestamp = &metav1.Time{}
	waiting := release(2, condition("Ready", metav1.ConditionFalse, "DependencyNotReady", 2))
	stalled := release(2, condition("Stalled", metav1.ConditionTrue, "RetriesExceeded", 2))
	for name, c := range map[string]struct {
		obj    *helmv2.HelmRelease
		ready  bool
		reason string
	}{
		"nothing reported":    {release(0), false, providerv1.ReasonProgressing},
		"ready":               {release(2, condition("Ready", metav1.ConditionTrue, "Succeeded", 2)), true, providerv1.ReasonReady},
		"ready, but stale":    {release(1, condition("Ready", metav1.ConditionTrue, "Succeeded", 1)), false, providerv1.ReasonProgressing},
		"unknown":             {release(2, condition("Ready", metav1.ConditionUnknown, "Progressing", 2)), false, providerv1.ReasonProgressing},
		"failed":              {release(2, condition("Ready", metav1.ConditionFalse, "InstallFailed", 2)), false, providerv1.ReasonFluxFailed},
		"failed, but stale":   {release(1, condition("Ready", metav1.ConditionFalse, "InstallFailed", 1)), false, providerv1.ReasonProgressing},
		"waits for another":   {waiting, false, providerv1.ReasonProgressing},
		"stalled":             {stalled, false, providerv1.ReasonFluxStalled},
		"suspended":           {suspended, false, providerv1.ReasonSuspended},
		"is being taken away": {going, false, providerv1.ReasonUninstalling},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			health := gitops.FluxHealth(c.obj)
			g.Expect(health.Ready).To(Equal(c.ready), "%+v", health)
			g.Expect(health.Reason).To(Equal(c.reason), "%+v", health)
			if !c.ready {
				g.Expect(health.Message).To(ContainSubstring("HelmRelease ns/x"))
			}
		})
	}
	static := &sourcev1.HelmRepository{Spec: sourcev1.HelmRepositorySpec{Type: sourcev1.HelmRepositoryTypeOCI}}
	NewWithT(t).Expect(gitops.FluxHealth(static).Ready).To(BeTrue(), "it has no status")
}

func TestProviderHealth(t *testing.T) {
	good := func() *operatorv1.InfrastructureProvider {
		version := "v1.0.0"
		return &operatorv1.InfrastructureProvider{
			ObjectMeta: metav1.ObjectMeta{Name: "aws", Generation: 3},
			Spec:       operatorv1.InfrastructureProviderSpec{ProviderSpec: operatorv1.ProviderSpec{Version: version}},
			Status: operatorv1.InfrastructureProviderStatus{ProviderStatus: operatorv1.ProviderStatus{
				ObservedGeneration: 3, InstalledVersion: &version, Conditions: []metav1.Condition{
					condition("PreflightCheckPassed", metav1.ConditionTrue, "x", 3), condition("ProviderInstalled", metav1.ConditionTrue, "x", 3),
					condition("Ready", metav1.ConditionTrue, "x", 3),
				},
			}},
		}
	}
	for name, c := range map[string]struct {
		change func(*operatorv1.InfrastructureProvider)
		ready  bool
		reason string
	}{
		"healthy": {func(*operatorv1.InfrastructureProvider) {}, true, providerv1.ReasonReady},
		"an upgrade has not begun": {
			func(p *operatorv1.InfrastructureProvider) { p.Spec.Version = "v0.9.0" }, false, providerv1.ReasonProgressing},
		"the operator has not seen it": {
			func(p *operatorv1.InfrastructureProvider) { p.Status.ObservedGeneration = 2 }, false, providerv1.ReasonProgressing},
		"nothing is installed": {
			func(p *operatorv1.InfrastructureProvider) { p.Status.InstalledVersion = nil }, false, providerv1.ReasonProgressing},
		"nothing is reported": {
			func(p *operatorv1.InfrastructureProvider) { p.Status.Conditions = nil }, false, providerv1.ReasonProgressing},
		"the preflight check failed": {func(p *operatorv1.InfrastructureProvider) {
			p.Status.Conditions[0] = condition("PreflightCheckPassed", metav1.ConditionFalse, "IncorrectVersionFormat", 3)
		}, false, providerv1.ReasonProviderFailed},
		"it waits for core": {func(p *operatorv1.InfrastructureProvider) {
			p.Status.Conditions[0] = condition("PreflightCheckPassed", metav1.ConditionFalse, operatorv1.WaitingForCoreProviderReadyReason, 3)
		}, false, providerv1.ReasonProgressing},
		"an upgrade failed while Ready is True": {func(p *operatorv1.InfrastructureProvider) {
			p.Status.Conditions = append(p.Status.Conditions, condition("ProviderUpgraded", metav1.ConditionFalse, "ProviderUpgradeError", 3))
		}, false, providerv1.ReasonProviderFailed},
		"its Deployment is not available": {func(p *operatorv1.InfrastructureProvider) {
			p.Status.Conditions[2] = condition("Ready", metav1.ConditionFalse, "MinimumReplicasUnavailable", 3)
		}, false, providerv1.ReasonProgressing},
		"it is being deleted": {
			func(p *operatorv1.InfrastructureProvider) { p.DeletionTimestamp = &metav1.Time{} }, false, providerv1.ReasonUninstalling},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			provider := good()
			c.change(provider)
			health := gitops.ProviderHealth(provider, "v1.0.0")
			g.Expect(health.Ready).To(Equal(c.ready), "%+v", health)
			g.Expect(health.Reason).To(Equal(c.reason), "%+v", health)
		})
	}
}
