// SPDX-License-Identifier: Apache-2.0

package gitops_test

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// healthChecks returns the health checks of a Kustomization of ours.
func healthChecks(t *testing.T, part gitops.Part) []kustomize.CustomHealthCheck {
	t.Helper()
	kustomization, ok := part.Installer.(*kustomizev1.Kustomization)
	NewWithT(t).Expect(ok).To(BeTrue())
	return kustomization.Spec.HealthCheckExprs
}

// evaluator returns Flux's own evaluator of the expressions that the Kustomizations of providers have.
func evaluator(t *testing.T) *cel.StatusEvaluator {
	t.Helper()
	g := NewWithT(t)
	bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{Providers: []providerv1.Provider{
		{Type: providerv1.InfrastructureType, Name: "aws", Version: "v1.0.0"},
	}}))
	g.Expect(err).NotTo(HaveOccurred())
	checks := healthChecks(t, bundle.Providers[0])
	g.Expect(checks).To(HaveLen(1))
	found, err := cel.NewStatusEvaluator(&checks[0].HealthCheckExpressions)
	g.Expect(err).NotTo(HaveOccurred())
	return found
}

// verdict returns what Flux makes of a provider object.
func verdict(t *testing.T, with *cel.StatusEvaluator, obj *operatorv1.InfrastructureProvider) status.Status {
	t.Helper()
	g := NewWithT(t)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	g.Expect(err).NotTo(HaveOccurred())
	result, err := with.Evaluate(t.Context(), &unstructured.Unstructured{Object: content})
	g.Expect(err).NotTo(HaveOccurred(), "the expressions must have a value for every status: %v", content)
	return result.Status
}

// installed returns a provider that is installed and works, as the CAPI Operator reports it.
func installed() *operatorv1.InfrastructureProvider {
	version := "v1.0.0"
	return &operatorv1.InfrastructureProvider{
		ObjectMeta: metav1.ObjectMeta{Name: "aws", Generation: 3, Finalizers: []string{operatorv1.ProviderFinalizer}},
		Spec:       operatorv1.InfrastructureProviderSpec{ProviderSpec: operatorv1.ProviderSpec{Version: version}},
		Status: operatorv1.InfrastructureProviderStatus{ProviderStatus: operatorv1.ProviderStatus{
			ObservedGeneration: 3, InstalledVersion: &version, Conditions: []metav1.Condition{
				condition("PreflightCheckPassed", metav1.ConditionTrue, "x", 3),
				condition("ProviderInstalled", metav1.ConditionTrue, "x", 3),
				// The operator leaves old generations here.
				condition("Ready", metav1.ConditionTrue, "x", 1),
			},
		}},
	}
}

func TestFluxReadsProvidersTheStrictWay(t *testing.T) {
	with := evaluator(t)
	failing := func(index int, kind, reason string) func(*operatorv1.InfrastructureProvider) {
		return func(p *operatorv1.InfrastructureProvider) {
			p.Status.Conditions[index] = condition(kind, metav1.ConditionFalse, reason, 3)
		}
	}
	upgraded := func(value metav1.ConditionStatus) func(*operatorv1.InfrastructureProvider) {
		return func(p *operatorv1.InfrastructureProvider) {
			p.Status.Conditions = append(p.Status.Conditions, condition("ProviderUpgraded", value, "x", 3))
		}
	}
	for name, c := range map[string]struct {
		change func(*operatorv1.InfrastructureProvider)
		want   status.Status
	}{
		"works":    {func(*operatorv1.InfrastructureProvider) {}, status.CurrentStatus},
		"upgraded": {upgraded(metav1.ConditionTrue), status.CurrentStatus},
		"nothing is reported": {func(p *operatorv1.InfrastructureProvider) {
			p.Status = operatorv1.InfrastructureProviderStatus{}
		}, status.InProgressStatus},
		"first pass: only finalizer and observedGeneration": {func(p *operatorv1.InfrastructureProvider) {
			p.Status = operatorv1.InfrastructureProviderStatus{ProviderStatus: operatorv1.ProviderStatus{ObservedGeneration: 3}}
		}, status.InProgressStatus},
		"no finalizer yet": {func(p *operatorv1.InfrastructureProvider) { p.Finalizers = nil }, status.InProgressStatus},
		"is being deleted": {func(p *operatorv1.InfrastructureProvider) {
			now := metav1.Now()
			p.DeletionTimestamp = &now
		}, status.InProgressStatus},
		"old generation":    {func(p *operatorv1.InfrastructureProvider) { p.Status.ObservedGeneration = 2 }, status.InProgressStatus},
		"no generation":     {func(p *operatorv1.InfrastructureProvider) { p.Status.ObservedGeneration = 0 }, status.InProgressStatus},
		"old version runs":  {func(p *operatorv1.InfrastructureProvider) { p.Spec.Version = "v1.1.0" }, status.InProgressStatus},
		"nothing installed": {func(p *operatorv1.InfrastructureProvider) { p.Status.InstalledVersion = nil }, status.InProgressStatus},
		"no Ready condition": {func(p *operatorv1.InfrastructureProvider) {
			p.Status.Conditions = p.Status.Conditions[:2]
		}, status.InProgressStatus},
		"upgrade failed":      {upgraded(metav1.ConditionFalse), status.FailedStatus},
		"waits for core":      {failing(0, "PreflightCheckPassed", operatorv1.WaitingForCoreProviderReadyReason), status.InProgressStatus},
		"unknown provider":    {failing(0, "PreflightCheckPassed", operatorv1.UnknownProviderReason), status.FailedStatus},
		"no components":       {failing(1, "ProviderInstalled", operatorv1.ComponentsFetchErrorReason), status.FailedStatus},
		"Deployment is slow":  {failing(1, "ProviderInstalled", "TimedOutWaitingForDeployment"), status.InProgressStatus},
		"Deployment is down":  {failing(2, "Ready", "MinimumReplicasUnavailable"), status.InProgressStatus},
		"Deployment is going": {failing(2, "Ready", operatorv1.NoDeploymentAvailableConditionReason), status.InProgressStatus},
	} {
		t.Run(name, func(t *testing.T) {
			provider := installed()
			c.change(provider)
			NewWithT(t).Expect(verdict(t, with, provider)).To(Equal(c.want))
		})
	}
}

// conditionValues are all that a condition may be; empty stands for one that is not there.
var conditionValues = []metav1.ConditionStatus{"", metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}

// TestFluxAndTheStatusAgree compares, for all statuses that there can be, what Flux makes of a provider with what the
// status of the ProviderConfig says of it: a Kustomization must never be ready with a provider that is not, or the other
// way round.
func TestFluxAndTheStatusAgree(t *testing.T) {
	with := evaluator(t)
	for _, preflight := range conditionValues {
		for _, install := range conditionValues {
			for _, upgrade := range conditionValues {
				for _, ready := range conditionValues {
					agree(t, with, withConditions(map[string]metav1.ConditionStatus{
						"PreflightCheckPassed": preflight, "ProviderInstalled": install, "ProviderUpgraded": upgrade, "Ready": ready,
					}))
				}
			}
		}
	}
}

// withConditions returns a provider with these conditions.
func withConditions(values map[string]metav1.ConditionStatus) *operatorv1.InfrastructureProvider {
	provider := installed()
	provider.Status.Conditions = nil
	for _, kind := range []string{"PreflightCheckPassed", "ProviderInstalled", "ProviderUpgraded", "Ready"} {
		if values[kind] != "" {
			provider.Status.Conditions = append(provider.Status.Conditions, condition(kind, values[kind], "x", 3))
		}
	}
	return provider
}

// agree compares both verdicts about a provider, and about the same with an old version and an old generation.
func agree(t *testing.T, with *cel.StatusEvaluator, provider *operatorv1.InfrastructureProvider) {
	t.Helper()
	older := provider.DeepCopy()
	older.Status.ObservedGeneration = 2
	other := provider.DeepCopy()
	other.Spec.Version = "v1.1.0"
	for _, p := range []*operatorv1.InfrastructureProvider{provider, older, other} {
		health := gitops.ProviderHealth(p, p.Spec.Version)
		flux := verdict(t, with, p)
		NewWithT(t).Expect(health.Ready).To(Equal(flux == status.CurrentStatus), "Flux: %s, %+v, %+v", flux, health, p.Status)
		if flux == status.FailedStatus {
			NewWithT(t).Expect(health.Reason).To(Equal(providerv1.ReasonProviderFailed), "%+v", p.Status)
		}
	}
}

func TestSetsAreCheckedForProvidersOfAllTypes(t *testing.T) {
	g := NewWithT(t)
	bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{ProviderSets: []providerv1.ProviderSet{{Name: "metal"}}}))
	g.Expect(err).NotTo(HaveOccurred())
	var kinds []string
	for _, check := range healthChecks(t, bundle.Sets[0]) {
		g.Expect(check.APIVersion).To(Equal("operator.cluster.x-k8s.io/v1alpha2"))
		kinds = append(kinds, check.Kind)
		_, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(kinds).To(ConsistOf("InfrastructureProvider", "BootstrapProvider", "ControlPlaneProvider", "AddonProvider",
		"IPAMProvider", "RuntimeExtensionProvider"))
	g.Expect(healthChecks(t, bundle.Core)[0].Kind).To(Equal("CoreProvider"))
}
