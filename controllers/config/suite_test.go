// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"os"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/apply"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Run(m, &env)) }

// fixture is one instance of the provider, alone with its objects, with a test that plays Flux and the CAPI Operator.
type fixture struct {
	*WithT
	ctx        context.Context
	reconciler *Reconciler
	namespace  string
	instance   string
	// failing makes the CAPI Operator report that these components cannot be installed.
	failing map[string]string
	// writes counts what the reconciler and the play have written.
	writes int
	// fail, when set, is asked before each write of the reconciler; its error becomes that of the write.
	fail func() error
	// broken makes Flux report that these sources cannot be fetched.
	broken map[string]string
}

// hiding is a client of a cluster that does not serve a group of kinds.
type hiding struct {
	client.Client
	groups map[string]bool
}

func (h *hiding) RESTMapper() apimeta.RESTMapper {
	return &hidingMapper{h.Client.RESTMapper(), h.groups}
}

type hidingMapper struct {
	apimeta.RESTMapper
	groups map[string]bool
}

func (h *hidingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*apimeta.RESTMapping, error) {
	if h.groups[kind.Group] {
		return nil, &apimeta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	if kind.Group == "cert-manager.io" {
		return nil, nil //nolint:nilnil // the kind is served, and nobody asks for more
	}
	return h.RESTMapper.RESTMapping(kind, versions...)
}

// Create lets pass dry runs of cert-manager's kinds, whose CRDs are not installed here.
func (h *hiding) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if obj.GetObjectKind().GroupVersionKind().Group == "cert-manager.io" {
		return nil
	}
	return h.Client.Create(ctx, obj, opts...)
}

func newFixture(t *testing.T, hidden ...string) *fixture {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(20 * time.Second)
	groups := map[string]bool{}
	for _, group := range hidden {
		groups[group] = true
	}
	namespace := env.Namespace(t)
	f := &fixture{
		WithT: g, ctx: t.Context(), namespace: namespace, instance: namespace,
		failing: map[string]string{}, broken: map[string]string{},
	}
	f.reconciler = f.newReconciler(&hooked{&hiding{env.Client, groups}, func() error {
		f.writes++
		if f.fail != nil {
			return f.fail()
		}
		return nil
	}})
	t.Cleanup(f.cleanUp)
	return f
}

// cleanUp deletes the provider objects of the fixture: in other tests they would keep the CAPI Operator.
func (f *fixture) cleanUp() {
	for _, kind := range providerKinds() {
		obj, err := f.reconciler.elementOf(kind)
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(env.Client.DeleteAllOf(context.Background(), obj, client.InNamespace(f.namespace))).To(Succeed())
	}
}

func (f *fixture) newReconciler(c client.Client) *Reconciler {
	return &Reconciler{
		Client: c, Applier: apply.New(c), Recorder: events.NewFakeRecorder(1000), Clock: clock.RealClock{},
		ProviderName: f.instance, Environment: "e", Namespace: f.namespace,
		Defaults: gitops.Defaults{
			Operator: providerv1.OperatorSpec{Chart: &providerv1.Chart{
				OCI: &sourcev1.OCIRepositorySpec{URL: "oci://registry.example.org/operator"}, Version: "0.29.0",
			}},
			Core:           providerv1.CoreProvider{Version: "v1.14.2"},
			ProviderSource: &providerv1.ProviderSource{OCI: &sourcev1.OCIRepositorySpec{URL: "oci://registry.example.org/sets"}},
		},
	}
}

// config returns a ProviderConfig with one infrastructure provider and one profile, whose ClusterClass is in the
// fixture's namespace.
func (f *fixture) config(name string) *providerv1.ProviderConfig {
	return &providerv1.ProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: f.instance + name},
		Spec: providerv1.ProviderConfigSpec{
			ProviderRef: providerv1.ProviderReference{Name: f.instance},
			// Its usual namespace would be shared with other tests.
			Core: providerv1.CoreProvider{Version: "v1.14.2", Namespace: f.namespace},
			Providers: []providerv1.Provider{{
				Type: providerv1.InfrastructureType, Name: "local", Version: "v0.1.0", Namespace: f.namespace,
			}},
			Profiles: []providerv1.Profile{{
				Name: "small", Template: providerv1.ClusterTemplate{Topology: providerv1.TopologyTemplate{
					ClassRef: clusterv1.ClusterClassRef{Name: "class", Namespace: f.namespace},
				}},
			}},
		},
	}
}

func (f *fixture) create(objs ...client.Object) {
	for _, obj := range objs {
		f.Expect(env.Client.Create(f.ctx, obj)).To(Succeed())
	}
}

// clusterClass returns the ClusterClass of the profile.
func (f *fixture) clusterClass() *clusterv1.ClusterClass {
	template := func(kind, group string) clusterv1.ClusterClassTemplateReference {
		return clusterv1.ClusterClassTemplateReference{APIVersion: group + "/v1alpha1", Kind: kind, Name: "template"}
	}
	return &clusterv1.ClusterClass{
		ObjectMeta: metav1.ObjectMeta{Name: "class", Namespace: f.namespace},
		Spec: clusterv1.ClusterClassSpec{
			KubernetesVersions: []string{"v1.35.0", "v1.36.3"},
			Infrastructure: clusterv1.InfrastructureClass{
				TemplateRef: template("LocalClusterTemplate", "infrastructure.cluster.x-k8s.io"),
			},
			ControlPlane: clusterv1.ControlPlaneClass{
				TemplateRef: template("LocalControlPlaneTemplate", "controlplane.cluster.x-k8s.io"),
			},
		},
	}
}

// reconcile reconciles a ProviderConfig once, and returns it as it is then; nil when it is gone.
func (f *fixture) reconcile(config *providerv1.ProviderConfig) (*providerv1.ProviderConfig, error) {
	key := client.ObjectKeyFromObject(config)
	_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: key})
	live := &providerv1.ProviderConfig{}
	if getErr := env.Client.Get(f.ctx, key, live); apierrors.IsNotFound(getErr) {
		return nil, err
	} else if getErr != nil {
		return nil, getErr
	}
	return live, err
}

// converge reconciles and plays until nothing changes any more, and returns the ProviderConfig; nil when it is gone. An
// error is one that f.fail has made.
func (f *fixture) converge(config *providerv1.ProviderConfig) *providerv1.ProviderConfig {
	for range 30 {
		before := f.writes
		live, err := f.reconcile(config)
		if f.fail == nil {
			f.Expect(err).NotTo(HaveOccurred())
		}
		f.play()
		if f.writes == before && err == nil {
			return live
		}
	}
	f.Expect("the ProviderConfig").To(Equal("settled"))
	return nil
}

// updateStatus writes the status of an object that the play has changed.
func (f *fixture) updateStatus(obj, before client.Object) {
	if equality.Semantic.DeepEqual(obj, before) {
		return
	}
	f.writes++
	f.Expect(env.Client.Status().Update(f.ctx, obj)).To(Succeed())
}

// play does what Flux and the CAPI Operator would do with what is there.
func (f *fixture) play() {
	ready := func(obj client.Object, conditions *[]metav1.Condition) {
		c := metav1.Condition{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "stored artifact",
			ObservedGeneration: obj.GetGeneration(),
		}
		if message := f.broken[obj.GetLabels()[providerv1.ComponentLabel]]; message != "" {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, "OCIArtifactPullFailed", message
		}
		apimeta.SetStatusCondition(conditions, c)
	}
	sources := &sourcev1.OCIRepositoryList{}
	f.Expect(env.Client.List(f.ctx, sources, client.InNamespace(f.namespace))).To(Succeed())
	for _, o := range sources.Items {
		before := o.DeepCopy()
		o.Status.ObservedGeneration = o.Generation
		ready(&o, &o.Status.Conditions)
		f.updateStatus(&o, before)
	}
	releases := &helmv2.HelmReleaseList{}
	f.Expect(env.Client.List(f.ctx, releases, client.InNamespace(f.namespace))).To(Succeed())
	for _, o := range releases.Items {
		if f.broken[o.Labels[providerv1.ComponentLabel]] != "" {
			continue // Flux waits for the source, and says nothing yet
		}
		before := o.DeepCopy()
		o.Status.ObservedGeneration = o.Generation
		ready(&o, &o.Status.Conditions)
		f.updateStatus(&o, before)
	}
	f.playKustomize()
}

// playKustomize does what the kustomize-controller and, after it, the CAPI Operator would do.
func (f *fixture) playKustomize() {
	kustomizations := &kustomizev1.KustomizationList{}
	f.Expect(env.Client.List(f.ctx, kustomizations, client.InNamespace(f.namespace))).To(Succeed())
	wanted := map[string]bool{}
	for _, k := range kustomizations.Items {
		component := k.Labels[providerv1.ComponentLabel]
		wanted[component] = true
		if f.broken[gitops.ProviderSet] != "" {
			continue
		}
		message := f.playProvider(k)
		c := metav1.Condition{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "ReconciliationSucceeded", Message: "applied",
			ObservedGeneration: k.Generation,
		}
		if message != "" {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, "HealthCheckFailed", "health check failed"
		}
		before := k.DeepCopy()
		k.Status.ObservedGeneration = k.Generation
		apimeta.SetStatusCondition(&k.Status.Conditions, c)
		f.updateStatus(&k, before)
	}
	for _, kind := range []client.ObjectList{&operatorv1.CoreProviderList{}, &operatorv1.InfrastructureProviderList{}} {
		ours := client.MatchingLabels{providerv1.ManagedByLabel: f.instance}
		f.Expect(env.Client.List(f.ctx, kind, client.InNamespace(f.namespace), ours)).To(Succeed())
		items, err := apimeta.ExtractList(kind)
		f.Expect(err).NotTo(HaveOccurred())
		for _, item := range items {
			if obj, ok := item.(client.Object); ok && !wanted[obj.GetLabels()[providerv1.ComponentLabel]] {
				f.writes++
				f.Expect(env.Client.Delete(f.ctx, obj)).To(Succeed())
			}
		}
	}
}

// playProvider makes the provider object of a Kustomization, and returns what is wrong with it.
func (f *fixture) playProvider(k kustomizev1.Kustomization) string {
	values, component := k.Spec.PostBuild.Substitute, k.Labels[providerv1.ComponentLabel]
	var obj operatorv1.GenericProvider = &operatorv1.InfrastructureProvider{}
	if component == gitops.Core {
		obj = &operatorv1.CoreProvider{}
	}
	// The manifests of a provider set are whatever its owner writes: here, a provider that takes the same variables.
	obj.SetName(values["PROVIDER_NAME"])
	obj.SetNamespace(f.namespace) // the namespaces of others are not there
	key := client.ObjectKeyFromObject(obj)
	if err := env.Client.Get(f.ctx, key, obj); apierrors.IsNotFound(err) {
		obj.SetLabels(k.Spec.CommonMetadata.Labels)
		obj.SetSpec(operatorv1.ProviderSpec{Version: values["PROVIDER_VERSION"]})
		f.Expect(env.Client.Create(f.ctx, obj)).To(Succeed())
	}
	spec := obj.GetSpec()
	spec.Version = values["PROVIDER_VERSION"]
	obj.SetSpec(spec)
	obj.SetLabels(k.Spec.CommonMetadata.Labels)
	f.Expect(env.Client.Update(f.ctx, obj)).To(Succeed())
	before, _ := obj.DeepCopyObject().(client.Object)

	message := f.failing[component]
	state := metav1.ConditionTrue
	if message != "" {
		state = metav1.ConditionFalse
	}
	status := obj.GetStatus()
	status.ObservedGeneration, status.InstalledVersion = obj.GetGeneration(), &spec.Version
	for _, kind := range []string{
		operatorv1.PreflightCheckCondition, operatorv1.ProviderInstalledCondition, "Ready",
	} {
		apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: state, Reason: "Played", Message: message, ObservedGeneration: obj.GetGeneration(),
		})
	}
	obj.SetStatus(status)
	f.updateStatus(obj, before)
	return message
}

// profiles returns the ClusterProfiles of the instance, by name.
func (f *fixture) profiles() map[string]clustersv1.ClusterProfile {
	list := &clustersv1.ClusterProfileList{}
	f.Expect(env.Client.List(f.ctx, list, client.MatchingLabels{providerv1.ManagedByLabel: f.instance})).To(Succeed())
	out := map[string]clustersv1.ClusterProfile{}
	for _, p := range list.Items {
		out[p.Name] = p
	}
	return out
}

// exists says whether an object is there.
func (f *fixture) exists(obj client.Object, name string) bool {
	err := env.Client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, obj)
	f.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}
