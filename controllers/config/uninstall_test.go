// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

// cluster returns a Cluster of the fixture's profile.
func (f *fixture) cluster(config *providerv1.ProviderConfig) *clustersv1.Cluster {
	return &clustersv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "team"},
		Spec: clustersv1.ClusterSpec{
			Profile: "e." + f.instance + "." + config.Name + ".small", Purposes: []string{"test"}, Tenancy: clustersv1.TENANCY_EXCLUSIVE,
		},
	}
}

func TestUninstallsEverythingButWhatIsForeign(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	// It has all our labels but the one of the instance.
	foreign := &helmv2.HelmRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "foreign", Labels: map[string]string{
			providerv1.ProviderConfigLabel: config.Name, providerv1.ComponentLabel: "operator",
		}},
		Spec: helmv2.HelmReleaseSpec{ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "x"}},
	}
	f.create(f.clusterClass(), config, foreign)
	f.converge(config)
	f.Expect(env.Client.Delete(f.ctx, config)).To(Succeed())
	f.Expect(f.converge(config)).To(BeNil())

	f.Expect(f.exists(&helmv2.HelmRelease{}, "foreign")).To(BeTrue())
	f.Expect(f.exists(&helmv2.HelmRelease{}, f.instance+"-operator")).To(BeFalse())
	f.Expect(f.exists(&kustomizev1.Kustomization{}, f.instance+"-core")).To(BeFalse())
	f.Expect(f.exists(&sourcev1.OCIRepository{}, f.instance+"-provider-set")).To(BeFalse())
	f.Expect(f.exists(&sourcev1.OCIRepository{}, f.instance+"-operator")).To(BeFalse())
	f.Expect(f.exists(&operatorv1.CoreProvider{}, "cluster-api")).To(BeFalse())
	f.Expect(f.profiles()).To(BeEmpty())

	again := f.config("")
	f.create(again)
	f.Expect(f.converge(again)).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
}

func TestKeepsWhatClustersUse(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	cluster := f.cluster(config)
	f.create(f.clusterClass(), config, cluster)
	f.converge(config)
	f.Expect(env.Client.Delete(f.ctx, config)).To(Succeed())
	live := f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.DependentsGoneCondition, metav1.ConditionFalse, providerv1.ReasonDeletionBlocked))
	f.Expect(message(live, providerv1.DependentsGoneCondition)).To(ContainSubstring("Cluster " + f.namespace + "/team"))
	f.Expect(f.profiles()).To(HaveLen(1))
	f.Expect(f.exists(&kustomizev1.Kustomization{}, f.instance+"-infrastructure-local")).To(BeTrue())

	f.Expect(env.Client.Delete(f.ctx, cluster)).To(Succeed())
	f.Expect(f.converge(config)).To(BeNil())
}

func TestDropsAProviderThatIsNoLongerNamed(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	f.create(f.clusterClass(), config)
	live := f.converge(config)
	f.Expect(f.exists(&operatorv1.InfrastructureProvider{}, "local")).To(BeTrue())
	live.Spec.Providers, live.Spec.Profiles = nil, nil
	f.Expect(env.Client.Update(f.ctx, live)).To(Succeed())
	live = f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(f.exists(&operatorv1.InfrastructureProvider{}, "local")).To(BeFalse())
	f.Expect(f.exists(&kustomizev1.Kustomization{}, f.instance+"-infrastructure-local")).To(BeFalse())
	f.Expect(f.exists(&kustomizev1.Kustomization{}, f.instance+"-core")).To(BeTrue())
	f.Expect(f.profiles()).To(BeEmpty())
	f.Expect(live.Status.Providers).To(Equal("1/1"))
}

func TestResumesWhatIsSuspendedBeforeItGoes(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	f.create(f.clusterClass(), config)
	live := f.converge(config)
	live.Spec.Suspend = true
	f.Expect(env.Client.Update(f.ctx, live)).To(Succeed())
	live = f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.OperatorReadyCondition, metav1.ConditionFalse, providerv1.ReasonSuspended))

	kustomization := &kustomizev1.Kustomization{}
	f.Expect(f.exists(kustomization, f.instance+"-core")).To(BeTrue())
	kustomization.Spec.Suspend = true
	kustomization.Finalizers = []string{"finalizers.fluxcd.io"}
	f.Expect(env.Client.Update(f.ctx, kustomization)).To(Succeed())
	f.Expect(env.Client.Delete(f.ctx, config)).To(Succeed())
	f.converge(config)
	f.Expect(f.exists(kustomization, f.instance+"-core")).To(BeTrue())
	f.Expect(kustomization.DeletionTimestamp).NotTo(BeNil())
	f.Expect(kustomization.Spec.Suspend).To(BeFalse())
	kustomization.Finalizers = nil
	f.Expect(env.Client.Update(f.ctx, kustomization)).To(Succeed())
	f.Expect(f.converge(config)).To(BeNil())
}

func TestOldestOwnsAndPassesOn(t *testing.T) {
	f := newFixture(t)
	older, younger, other := f.config("a"), f.config("b"), f.config("c")
	other.Spec.Core.Version = "v1.13.6"
	f.create(f.clusterClass(), older, younger, other)
	f.converge(older)
	f.Expect(f.converge(younger)).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	conflicting := f.converge(other)
	f.Expect(conflicting).To(testenv.HaveCondition(providerv1.CoreReadyCondition, metav1.ConditionFalse, providerv1.ReasonConflict))
	f.Expect(message(conflicting, providerv1.CoreReadyCondition)).To(ContainSubstring(older.Name))
	core := &kustomizev1.Kustomization{}
	f.Expect(f.exists(core, f.instance+"-core")).To(BeTrue())
	f.Expect(core.Labels).To(HaveKeyWithValue(providerv1.ProviderConfigLabel, older.Name))
	uid := core.UID

	f.Expect(env.Client.Delete(f.ctx, older)).To(Succeed())
	f.Expect(f.converge(older)).To(BeNil())
	f.converge(younger)
	f.Expect(f.exists(core, f.instance+"-core")).To(BeTrue())
	f.Expect(core.UID).To(Equal(uid), "the hand-over re-created it")
	f.Expect(core.Labels).To(HaveKeyWithValue(providerv1.ProviderConfigLabel, younger.Name))
}

// serveLocalClusters makes the API server serve a kind that belongs to the provider local.
func (f *fixture) serveLocalClusters() schema.GroupVersionKind {
	gvk := schema.GroupVersionKind{Group: f.instance + ".example.org", Version: "v1", Kind: "LocalCluster"}
	preserve := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "localclusters." + gvk.Group, Labels: map[string]string{clusterv1.ProviderNameLabel: "infrastructure-local"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: gvk.Kind, ListKind: gvk.Kind + "List", Plural: "localclusters", Singular: "localcluster",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve},
				},
			}},
		},
	}
	f.create(crd)
	return gvk
}

func TestKeepsAProviderThatStillHasObjects(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	f.create(f.clusterClass(), config)
	live := f.converge(config)
	user := &unstructured.Unstructured{}
	user.SetGroupVersionKind(f.serveLocalClusters())
	user.SetNamespace(f.namespace)
	user.SetName("team")
	f.Eventually(func() error { return env.Client.Create(f.ctx, user) }).Should(Succeed())
	t.Cleanup(func() { f.Expect(client.IgnoreNotFound(env.Client.Delete(context.Background(), user))).To(Succeed()) })

	live.Spec.Providers, live.Spec.Profiles = nil, nil
	f.Expect(env.Client.Update(f.ctx, live)).To(Succeed())
	live = f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.ProvidersReadyCondition, metav1.ConditionFalse, providerv1.ReasonDeletionBlocked))
	f.Expect(message(live, providerv1.ProvidersReadyCondition)).To(ContainSubstring("LocalCluster " + f.namespace + "/team"))
	f.Expect(f.exists(&kustomizev1.Kustomization{}, f.instance+"-infrastructure-local")).To(BeTrue())

	f.Expect(env.Client.Delete(f.ctx, live)).To(Succeed())
	live = f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.UninstalledCondition, metav1.ConditionFalse, providerv1.ReasonDeletionBlocked))
	f.Expect(env.Client.Delete(f.ctx, user)).To(Succeed())
	f.Expect(f.converge(config)).To(BeNil())
}

func TestLeavesAnOperatorThatBecameExternal(t *testing.T) {
	f := newFixture(t)
	config := f.config("")
	f.create(f.clusterClass(), config)
	live := f.converge(config)
	live.Spec.Operator = providerv1.OperatorSpec{Management: providerv1.External}
	f.Expect(env.Client.Update(f.ctx, live)).To(Succeed())
	live = f.converge(config)
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(f.exists(&helmv2.HelmRelease{}, f.instance+"-operator")).To(BeTrue())
}
