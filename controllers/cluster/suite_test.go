// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
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

// errWrite is what a write fails with when a test wants it to.
var errWrite = errors.New("the API server went away")

// writes is a client that counts writes, and fails the one with the number fail, counted from 1.
type writes struct {
	client.Client
	count, fail int

	// lost says that the write that fails is done all the same, and only its answer is lost.
	lost bool

	// refusal is what each apply fails with, as when a webhook refuses it.
	refusal error

	// stale says that the cache knows no CAPI Cluster yet.
	stale bool
}

// do writes, unless the write is the one that fails.
func (w *writes) do(write func() error) error {
	if w.count++; w.count != w.fail {
		return write()
	}
	if w.lost {
		return errors.Join(errWrite, write())
	}
	return errWrite
}

func (w *writes) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*clusterv1.Cluster); ok && w.stale {
		return apierrors.NewNotFound(clusterv1.GroupVersion.WithResource("clusters").GroupResource(), key.Name)
	}
	return w.Client.Get(ctx, key, obj, opts...)
}

func (w *writes) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*clusterv1.ClusterList); ok && w.stale {
		return nil
	}
	return w.Client.List(ctx, list, opts...)
}

func (w *writes) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return w.do(func() error { return w.Client.Patch(ctx, obj, patch, opts...) })
}

func (w *writes) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return w.do(func() error { return w.Client.Delete(ctx, obj, opts...) })
}

func (w *writes) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if w.refusal != nil {
		return w.refusal
	}
	return w.do(func() error { return w.Client.Apply(ctx, obj, opts...) })
}

func (w *writes) Status() client.SubResourceWriter { return &statusWrites{w.Client.Status(), w} }

type statusWrites struct {
	client.SubResourceWriter
	writes *writes
}

func (s *statusWrites) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.writes.do(func() error { return s.SubResourceWriter.Patch(ctx, obj, patch, opts...) })
}

// fixture is one instance of the provider with a ProviderConfig that is ready, its profile and its ClusterClass. The test
// plays CAPI.
type fixture struct {
	*WithT
	ctx        context.Context
	client     *writes
	reconciler *Reconciler
	namespace  string
	config     *providerv1.ProviderConfig
	profile    *clustersv1.ClusterProfile
	class      *clusterv1.ClusterClass
	cluster    *clustersv1.Cluster
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{WithT: NewWithT(t), ctx: t.Context(), namespace: env.Namespace(t), client: &writes{Client: env.Client}}
	f.restart()
	template := func(kind, group string) clusterv1.ClusterClassTemplateReference {
		return clusterv1.ClusterClassTemplateReference{APIVersion: group + "/v1alpha1", Kind: kind, Name: "template"}
	}
	f.class = &clusterv1.ClusterClass{
		ObjectMeta: metav1.ObjectMeta{Name: "class", Namespace: f.namespace},
		Spec: clusterv1.ClusterClassSpec{
			KubernetesVersions: []string{"v1.35.0", "v1.36.3"},
			Infrastructure:     clusterv1.InfrastructureClass{TemplateRef: template("LocalClusterTemplate", "infrastructure.cluster.x-k8s.io")},
			ControlPlane:       clusterv1.ControlPlaneClass{TemplateRef: template("LocalControlPlaneTemplate", "controlplane.cluster.x-k8s.io")},
		},
	}
	f.config = &providerv1.ProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		Spec: providerv1.ProviderConfigSpec{
			ProviderRef: providerv1.ProviderReference{Name: f.namespace},
			Profiles: []providerv1.Profile{{Name: "p", Template: providerv1.ClusterTemplate{
				Topology: providerv1.TopologyTemplate{ClassRef: clusterv1.ClusterClassRef{Name: "class", Namespace: f.namespace}},
			}}},
		},
	}
	input := gitops.Input{Instance: f.namespace, Environment: "e", Config: f.config.Name}
	var err error
	f.profile, err = input.ClusterProfile(f.config.Spec.Profiles[0], f.class.Spec.KubernetesVersions)
	f.Expect(err).NotTo(HaveOccurred())
	f.cluster = &clustersv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "team", Labels: map[string]string{
			"metadata.open-control-plane.io/team": "a", "other": "b",
		}},
		Spec: clustersv1.ClusterSpec{Profile: f.profile.Name, Purposes: []string{"test"}, Tenancy: clustersv1.TENANCY_EXCLUSIVE},
	}
	f.create(f.config, f.profile, f.class)
	f.setProviders(metav1.ConditionTrue)
	return f
}

// restart starts the provider anew: it remembers nothing.
func (f *fixture) restart() {
	f.reconciler = f.newReconciler(f.client)
	f.reconciler.uncached = env.Client
}

func (f *fixture) newReconciler(c client.Client) *Reconciler {
	return &Reconciler{
		Client: c, Applier: apply.New(c), Recorder: events.NewFakeRecorder(1000),
		ProviderName: f.namespace, Environment: "e", Namespace: f.namespace,
	}
}

func (f *fixture) create(objs ...client.Object) {
	for _, obj := range objs {
		f.Expect(env.Client.Create(f.ctx, obj)).To(Succeed())
	}
}

// setProviders says in the ProviderConfig whether the providers are ready.
func (f *fixture) setProviders(status metav1.ConditionStatus) {
	for _, kind := range providerConditions {
		apimeta.SetStatusCondition(&f.config.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: "Played", Message: "played", ObservedGeneration: f.config.Generation,
		})
	}
	f.config.Status.Phase = "Played"
	f.Expect(env.Client.Status().Update(f.ctx, f.config)).To(Succeed())
}

// reconcile reconciles the Cluster once, and returns it as it is then; nil when it is gone.
func (f *fixture) reconcile() (*clustersv1.Cluster, error) {
	key := client.ObjectKeyFromObject(f.cluster)
	_, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: key})
	live := &clustersv1.Cluster{}
	if getErr := env.Client.Get(f.ctx, key, live); apierrors.IsNotFound(getErr) {
		return nil, err
	} else if getErr != nil {
		return nil, getErr
	}
	return live, err
}

// settle reconciles, with CAPI played in between, until nothing is written any more.
func (f *fixture) settle() *clustersv1.Cluster {
	for range 20 {
		before := f.client.count
		live, err := f.reconcile()
		if f.Expect(err == nil || errors.Is(err, errWrite)).To(BeTrue(), "%v", err); err != nil {
			f.restart()
		}
		if f.play() || f.client.count != before {
			continue
		}
		return live
	}
	f.Expect("the Cluster").To(Equal("settled"))
	return nil
}

// capiClusters returns all CAPI Clusters of the fixture.
func (f *fixture) capiClusters() []clusterv1.Cluster {
	list := &clusterv1.ClusterList{}
	f.Expect(env.Client.List(f.ctx, list, client.InNamespace(f.namespace))).To(Succeed())
	return list.Items
}

// play does what CAPI would do, and says whether that was anything.
func (f *fixture) play() bool {
	changed := false
	for _, c := range f.capiClusters() {
		if c.DeletionTimestamp != nil || c.Status.ObservedGeneration == c.Generation {
			continue
		}
		changed = true
		if c.Spec.ControlPlaneEndpoint.IsZero() {
			c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
			f.Expect(env.Client.Update(f.ctx, &c)).To(Succeed())
		}
		f.playStatus(&c, metav1.ConditionTrue)
	}
	return changed
}

// playStatus writes what CAPI reports. As CAPI does, it leaves ControlPlaneInitialized alone once it is True, with the
// generation that it was written for.
func (f *fixture) playStatus(c *clusterv1.Cluster, status metav1.ConditionStatus) {
	c.Status.ObservedGeneration = c.Generation
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	c.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{
		Versions: []clusterv1.StatusVersion{{Version: c.Spec.Topology.Version}},
	}
	for _, kind := range mirroredTypes {
		if kind == clusterv1.ClusterControlPlaneInitializedCondition && apimeta.IsStatusConditionTrue(c.Status.Conditions, kind) {
			continue
		}
		apimeta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: "Played", Message: "as CAPI says", ObservedGeneration: c.Generation,
		})
	}
	f.Expect(env.Client.Status().Update(f.ctx, c)).To(Succeed())
}

// update changes the Cluster.
func (f *fixture) update(change func(*clustersv1.Cluster)) {
	live := &clustersv1.Cluster{}
	f.Expect(env.Client.Get(f.ctx, client.ObjectKeyFromObject(f.cluster), live)).To(Succeed())
	change(live)
	f.Expect(env.Client.Update(f.ctx, live)).To(Succeed())
}

// message returns the message of a condition.
func message(cluster *clustersv1.Cluster, kind string) string {
	if c := apimeta.FindStatusCondition(cluster.Status.Conditions, kind); c != nil {
		return c.Message
	}
	return ""
}
