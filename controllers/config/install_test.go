// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	"github.com/openmcp-project/openmcp-operator/api/constants"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

func TestInstallsInOrder(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	f.create(f.clusterClass(), config)

	live, err := f.reconcile(config)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition(providerv1.OperatorReadyCondition, metav1.ConditionFalse, providerv1.ReasonProgressing))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseProgressing))
	f.Expect(f.exists(&helmv2.HelmRelease{}, f.instance+"-operator")).To(BeTrue())
	f.Expect(f.exists(&kustomizev1.Kustomization{}, f.instance+"-core")).To(BeFalse(), "core before the operator works")

	live = f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseReady))
	f.Expect(live.Status.Providers).To(Equal("2/2"))
	names := []string{}
	for _, c := range live.Status.Components {
		f.Expect(c.Ready).To(BeTrue(), "%+v", c)
		names = append(names, c.Type+"/"+c.Name)
	}
	f.Expect(names).To(Equal([]string{"certManager/cert-manager", "operator/operator", "core/cluster-api", "infrastructure/local"}))
	f.Expect(live.Status.Components[3].InstalledVersion).To(Equal("v0.1.0"))

	profile, ok := f.profiles()["e."+f.instance+"."+config.Name+".small"]
	f.Expect(ok).To(BeTrue(), "%v", f.profiles())
	f.Expect(profile.Spec.SupportedVersions).To(Equal([]clustersv1.SupportedK8sVersion{{Version: "1.36.3"}, {Version: "1.35.0"}}))
}

func TestWritesNothingWhenNothingChanged(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	f.create(f.clusterClass(), config)
	f.converge(config)
	before := f.writes
	_, err := f.reconcile(config)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.writes).To(Equal(before))
}

func TestMissingParts(t *testing.T) {
	for group, want := range map[string]struct{ condition, reason, message string }{
		"helm.toolkit.fluxcd.io":      {providerv1.AcceptedCondition, providerv1.ReasonFluxMissing, "HelmRelease"},
		"cert-manager.io":             {providerv1.CertManagerReadyCondition, providerv1.ReasonCertManagerMissing, "install cert-manager"},
		operatorv1.GroupVersion.Group: {providerv1.OperatorReadyCondition, providerv1.ReasonOperatorMissing, "CAPI Operator"},
	} {
		t.Run(group, func(t *testing.T) {
			f := newFixture(t, group)
			config := f.config("")
			config.Spec.Operator.Management = providerv1.External
			f.create(config)
			live := f.converge(config)
			f.Expect(live).To(testenv.HaveCondition(want.condition, metav1.ConditionFalse, want.reason))
			f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionFalse, want.reason))
			f.Expect(message(live, want.condition)).To(ContainSubstring(want.message))
			f.Expect(f.exists(&kustomizev1.Kustomization{}, f.instance+"-core")).To(BeFalse())
		})
	}
}

// message returns the message of a condition.
func message(config *providerv1.ProviderConfig, condition string) string {
	for _, c := range config.Status.Conditions {
		if c.Type == condition {
			return c.Message
		}
	}
	return ""
}

func TestNamesTheSourceThatCannotBeFetched(t *testing.T) {
	f := newFixture(t)
	f.broken["operator"] = "no such host"
	config := f.config("")
	f.create(config)
	live := f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.OperatorReadyCondition, metav1.ConditionFalse, providerv1.ReasonSourceNotReady))
	f.Expect(message(live, providerv1.OperatorReadyCondition)).To(And(
		ContainSubstring("OCIRepository "+f.namespace+"/"+f.instance+"-operator"), ContainSubstring("no such host")))

	delete(f.broken, "operator")
	f.broken["provider-set"] = "unauthorized"
	live = f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.CoreReadyCondition, metav1.ConditionFalse, providerv1.ReasonSourceNotReady))
	f.Expect(message(live, providerv1.CoreReadyCondition)).To(ContainSubstring("unauthorized"))
}

func TestReportsWhatTheOperatorSays(t *testing.T) {
	f := newFixture(t)
	f.failing["infrastructure-local"] = "version v9.9.9 does not exist"
	config := f.config("")
	f.create(f.clusterClass(), config)
	live := f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.ProvidersReadyCondition, metav1.ConditionFalse, providerv1.ReasonProviderFailed))
	f.Expect(message(live, providerv1.ProvidersReadyCondition)).To(ContainSubstring("v9.9.9 does not exist"))
	f.Expect(live.Status.Providers).To(Equal("1/2"))
	f.Expect(f.profiles()).To(HaveLen(1), "profiles do not depend on one provider")
}

func TestWaitsForTheConfigSecret(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	config.Spec.Providers[0].ConfigSecretRef = &providerv1.SecretReference{Name: "credentials"}
	f.create(f.clusterClass(), config)
	live := f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.CredentialsReadyCondition, metav1.ConditionFalse, providerv1.ReasonSecretNotFound))
	f.Expect(message(live, providerv1.CredentialsReadyCondition)).To(ContainSubstring(f.namespace + "/credentials"))
	f.Expect(f.exists(&kustomizev1.Kustomization{}, f.instance+"-infrastructure-local")).To(BeFalse())

	f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "credentials"}})
	f.Expect(f.converge(config)).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
}

func TestPublishesAProfileOnceItsClusterClassExists(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	f.create(config)
	live := f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(
		providerv1.ProfilesPublishedCondition, metav1.ConditionFalse, providerv1.ReasonClusterClassNotFound))
	f.Expect(message(live, providerv1.ProfilesPublishedCondition)).To(ContainSubstring(f.namespace + "/class"))
	f.Expect(f.profiles()).To(BeEmpty())

	f.create(f.clusterClass())
	f.Expect(f.reconciler.configsOfClass(f.ctx, f.clusterClass())).To(HaveLen(1))
	f.Expect(f.converge(config)).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(f.profiles()).To(HaveLen(1))
}

func TestRefusesAProfileNameThatIsTooLong(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	config.Spec.Profiles[0].Name = "a-name-of-forty-one-characters-0123456789"
	f.create(config)
	live, err := f.reconcile(config)
	f.Expect(errors.Is(err, reconcile.TerminalError(nil))).To(BeTrue(), "%v", err)
	f.Expect(live).To(testenv.HaveCondition(providerv1.AcceptedCondition, metav1.ConditionFalse, providerv1.ReasonInvalidSpec))
	f.Expect(message(live, providerv1.AcceptedCondition)).To(And(ContainSubstring("63"), ContainSubstring("clusterProfileName")))
	f.Expect(f.exists(&helmv2.HelmRelease{}, f.instance+"-operator")).To(BeFalse())
}

func TestNeverTakesAForeignClusterProfile(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	config.Spec.Profiles[0].ClusterProfileName = f.instance + ".theirs"
	f.create(f.clusterClass(), config, &clustersv1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Name: f.instance + ".theirs"},
		Spec: clustersv1.ClusterProfileSpec{
			ProviderRef: commonapi.LocalObjectReference{Name: "other"}, ProviderConfigRef: commonapi.LocalObjectReference{Name: "other"},
			SupportedVersions: []clustersv1.SupportedK8sVersion{{Version: "1.36.3"}},
		},
	})
	live := f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(
		providerv1.ProfilesPublishedCondition, metav1.ConditionFalse, providerv1.ReasonProfileConflict))
	theirs := &clustersv1.ClusterProfile{}
	f.Expect(env.Client.Get(f.ctx, client.ObjectKey{Name: f.instance + ".theirs"}, theirs)).To(Succeed())
	f.Expect(theirs.Spec.ProviderRef.Name).To(Equal("other"))
}

func TestOperationAnnotation(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	config.Annotations = map[string]string{constants.OperationAnnotation: constants.OperationAnnotationValueIgnore}
	f.create(f.clusterClass(), config)
	live := f.converge(config)
	f.Expect(live.Status.Conditions).To(BeEmpty())
	f.Expect(live.Finalizers).To(BeEmpty())

	live.Annotations[constants.OperationAnnotation] = constants.OperationAnnotationValueReconcile
	f.Expect(env.Client.Update(f.ctx, live)).To(Succeed())
	live = f.converge(config)
	f.Expect(live.Annotations).NotTo(HaveKey(constants.OperationAnnotation))
	release := &helmv2.HelmRelease{}
	f.Expect(f.exists(release, f.instance+"-operator")).To(BeTrue())
	f.Expect(release.Annotations).To(HaveKey("reconcile.fluxcd.io/requestedAt"))
}

func TestIgnoresOtherInstances(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	config.Spec.ProviderRef.Name = "other"
	f.create(config)
	live, err := f.reconcile(config)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live.Finalizers).To(BeEmpty())
	f.Expect(live.Status.Conditions).To(BeEmpty())
}

// TestSurvivesAFailureOfAnyWrite fails each write in turn, one in a run, and finds the same end each time.
func TestSurvivesAFailureOfAnyWrite(t *testing.T) {
	for nth := 0; ; nth++ {
		failing := nth
		f := newFixture(t)
		config := f.config("")
		f.create(f.clusterClass(), config)
		failed := false
		f.fail = func() error {
			if failing--; failing == -1 {
				failed = true
				return errors.New("the API server went away")
			}
			return nil
		}
		f.Expect(f.converge(config)).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
		f.Expect(f.profiles()).To(HaveLen(1))
		if failed {
			f.cleanUp() // the end is the same, and so is what is done with it
			continue
		}
		f.Expect(env.Client.Delete(f.ctx, config)).To(Succeed())
		f.Expect(f.converge(config)).To(BeNil())
		f.Expect(f.profiles()).To(BeEmpty())
		if !failed {
			return
		}
	}
}

func TestCollectsTheReadinessOfComponents(t *testing.T) {
	f := newFixture(t)
	f.failing["infrastructure-local"] = "no"
	config := f.config("")
	f.create(f.clusterClass(), config)
	f.converge(config)
	want := `
# HELP cluster_provider_capi_component_ready 1 when a component of a ProviderConfig is installed in the wanted version and works, else 0.
# TYPE cluster_provider_capi_component_ready gauge
cluster_provider_capi_component_ready{name="cert-manager",providerconfig="NAME",type="certManager"} 1
cluster_provider_capi_component_ready{name="operator",providerconfig="NAME",type="operator"} 1
cluster_provider_capi_component_ready{name="cluster-api",providerconfig="NAME",type="core"} 1
cluster_provider_capi_component_ready{name="local",providerconfig="NAME",type="infrastructure"} 0
`
	f.Expect(testutil.CollectAndCompare(f.reconciler.Collector(),
		strings.NewReader(strings.ReplaceAll(want, "NAME", config.Name)))).To(Succeed())
}

func TestLeavesAloneWhatAnotherReleaseHasApplied(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	f.create(f.clusterClass(), config)
	f.reconciler.Release = "v0.1.0"
	f.converge(config)

	next := f.newReconciler(f.reconciler.Client)
	next.Release, next.Defaults.Operator.Chart.Version = "v0.2.0", "0.30.0"
	done := make(chan error)
	go func() { done <- next.Bootstrap(f.ctx, func(metav1.Condition) {}) }()
	tag := func() string {
		source := &sourcev1.OCIRepository{}
		f.Expect(f.exists(source, f.instance+"-operator")).To(BeTrue())
		return source.Spec.Reference.Tag
	}
	f.Eventually(func() string { f.play(); return tag() }).Should(Equal("0.30.0"))
	f.converge(config)
	f.Expect(tag()).To(Equal("0.30.0"), "the old release fights with the new one")
	f.Expect(<-done).To(Succeed())
	f.reconciler = next
	f.Expect(f.converge(config)).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(tag()).To(Equal("0.30.0"))
}

func TestRefusesToDowngradeAProvider(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	f.create(f.clusterClass(), config)
	live := f.converge(config)
	live.Spec.Providers[0].Version = "v0.0.9"
	f.Expect(env.Client.Update(f.ctx, live)).To(Succeed())
	live = f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(
		providerv1.ProvidersReadyCondition, metav1.ConditionFalse, providerv1.ReasonDowngradeNotSupported))
	f.Expect(message(live, providerv1.ProvidersReadyCondition)).To(And(ContainSubstring("v0.0.9"), ContainSubstring("v0.1.0")))
	kustomization := &kustomizev1.Kustomization{}
	f.Expect(f.exists(kustomization, f.instance+"-infrastructure-local")).To(BeTrue())
	f.Expect(kustomization.Spec.PostBuild.Substitute).To(HaveKeyWithValue("PROVIDER_VERSION", "v0.1.0"))

	live.Spec.Providers[0].Version = "v0.2.0"
	f.Expect(env.Client.Update(f.ctx, live)).To(Succeed())
	live = f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(live.Status.Components[3].InstalledVersion).To(Equal("v0.2.0"))
}

func TestReconcileUnsticksAHelmRelease(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	f.create(f.clusterClass(), config)
	live := f.converge(config)
	release := &helmv2.HelmRelease{}
	f.Expect(f.exists(release, f.instance+"-operator")).To(BeTrue())
	release.Status.Conditions = []metav1.Condition{{
		Type: "Stalled", Status: metav1.ConditionTrue, Reason: "RetriesExceeded", Message: "gave up", LastTransitionTime: metav1.Now(),
	}}
	f.Expect(env.Client.Status().Update(f.ctx, release)).To(Succeed())
	live, err := f.reconcile(live)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition(providerv1.OperatorReadyCondition, metav1.ConditionFalse, providerv1.ReasonFluxStalled))

	live.Annotations = map[string]string{constants.OperationAnnotation: constants.OperationAnnotationValueReconcile}
	f.Expect(env.Client.Update(f.ctx, live)).To(Succeed())
	_, err = f.reconcile(live)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.exists(release, f.instance+"-operator")).To(BeTrue())
	requested := release.Annotations["reconcile.fluxcd.io/requestedAt"]
	f.Expect(requested).NotTo(BeEmpty())
	f.Expect(release.Annotations).To(And(
		HaveKeyWithValue("reconcile.fluxcd.io/forceAt", requested), HaveKeyWithValue("reconcile.fluxcd.io/resetAt", requested)))
}

func TestInstallsAProviderSet(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	config.Spec.Profiles = nil
	config.Spec.ProviderSets = []providerv1.ProviderSet{{
		Name: "metal", SourceRef: providerv1.SourceReference{Kind: "GitRepository", Name: "platform", Namespace: "flux-system"},
		Substitute: map[string]string{"PROVIDER_NAME": "metal", "PROVIDER_VERSION": "v0.7.0"},
	}}
	f.create(config)
	f.failing["set-metal"] = "no such image"
	live := f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.ProvidersReadyCondition, metav1.ConditionFalse, providerv1.ReasonFluxFailed))
	f.Expect(message(live, providerv1.ProvidersReadyCondition)).To(And(
		ContainSubstring("set-metal: HealthCheckFailed"), ContainSubstring("no such image")))
	f.Expect(live.Status.Providers).To(Equal("2/3"))

	delete(f.failing, "set-metal")
	live = f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(live.Status.Providers).To(Equal("3/3"))
	f.Expect(live.Status.Components).To(ContainElements(
		And(HaveField("Type", "providerSet"), HaveField("Name", "metal"), HaveField("Ready", true)),
		And(HaveField("Type", "infrastructure"), HaveField("Name", "metal"), HaveField("InstalledVersion", "v0.7.0"))))

	live.Spec.ProviderSets = nil
	f.Expect(env.Client.Update(f.ctx, live)).To(Succeed())
	live = f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(f.exists(&operatorv1.InfrastructureProvider{}, "metal")).To(BeFalse())
	f.Expect(live.Status.Components).To(HaveLen(4))
}

func TestStaysReadyWhileFluxLooksAgain(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	f.create(f.clusterClass(), config)
	f.converge(config)
	again := func(change func(*kustomizev1.Kustomization)) *providerv1.ProviderConfig {
		kustomization := &kustomizev1.Kustomization{}
		f.Expect(f.exists(kustomization, f.instance+"-core")).To(BeTrue())
		apimeta.SetStatusCondition(&kustomization.Status.Conditions, metav1.Condition{
			Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Progressing", Message: "Reconciliation in progress",
			ObservedGeneration: kustomization.Generation,
		})
		change(kustomization)
		f.Expect(env.Client.Status().Update(f.ctx, kustomization)).To(Succeed())
		live, err := f.reconcile(config)
		f.Expect(err).NotTo(HaveOccurred())
		return live
	}
	live := again(func(*kustomizev1.Kustomization) {})
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	live = again(func(k *kustomizev1.Kustomization) { k.Status.ObservedGeneration = 0 })
	f.Expect(live).To(testenv.HaveCondition(providerv1.CoreReadyCondition, metav1.ConditionFalse, providerv1.ReasonProgressing))
	live = again(func(*kustomizev1.Kustomization) {})
	f.Expect(live).To(testenv.HaveCondition(providerv1.CoreReadyCondition, metav1.ConditionFalse, providerv1.ReasonProgressing),
		"what was not ready is not ready before Flux says so")
}
