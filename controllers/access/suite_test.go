// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/apply"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/remote"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

// instance is the name of the provider. All tests share it: the API server stands for all clusters, and a cluster belongs
// to one instance.
const instance = "capi"

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Run(m, &env)) }

// fixture is a namespace with a Cluster whose API server is the test's own.
type fixture struct {
	*WithT
	ctx        context.Context
	t          *testing.T
	namespace  string
	clock      *testingclock.FakePassiveClock
	client     client.WithWatch
	connector  *remote.Connector
	reconciler *Reconciler
	cluster    *clustersv1.Cluster
	profile    *clustersv1.ClusterProfile
	// writes counts the writes to the platform cluster, calls the requests to the Cluster.
	writes, calls atomic.Int32
	// broken, unless nil, is what becomes of requests to the Cluster.
	broken atomic.Pointer[error]
}

// wrap counts, and breaks, the requests to the Cluster.
func (f *fixture) wrap(next http.RoundTripper) http.RoundTripper {
	return tripper(func(r *http.Request) (*http.Response, error) {
		f.calls.Add(1)
		if err := f.broken.Load(); err != nil {
			return nil, *err
		}
		return next.RoundTrip(r)
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(20 * time.Second)
	f := &fixture{
		WithT: g, ctx: t.Context(), t: t, namespace: env.Namespace(t),
		clock: testingclock.NewFakePassiveClock(time.Now()),
	}
	inner, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Client.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	f.client = interceptor.NewClient(inner, f.counting())
	f.restart()
	f.profile = &clustersv1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}, Spec: clustersv1.ClusterProfileSpec{
		ProviderRef:       commonapi.LocalObjectReference{Name: instance},
		ProviderConfigRef: commonapi.LocalObjectReference{Name: "config"},
		SupportedVersions: []clustersv1.SupportedK8sVersion{{Version: "1.36.0"}},
	}}
	g.Expect(env.Client.Create(f.ctx, f.profile)).To(Succeed())
	f.cluster = &clustersv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: f.namespace},
		Spec: clustersv1.ClusterSpec{
			Profile: f.namespace, Purposes: []string{"test"}, Tenancy: clustersv1.TENANCY_SHARED,
		},
	}
	g.Expect(env.Client.Create(f.ctx, f.cluster)).To(Succeed())
	return f
}

func (f *fixture) counting() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			f.writes.Add(1)
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			f.writes.Add(1)
			return c.Patch(ctx, obj, p, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			f.writes.Add(1)
			return c.Apply(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			f.writes.Add(1)
			return c.Delete(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			f.writes.Add(1)
			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
	}
}

// restart makes a new Reconciler, which remembers nothing.
func (f *fixture) restart() {
	f.connector = remote.NewConnector(f.client)
	f.connector.WrapTransport = f.wrap
	f.connector.Clock = f.clock
	f.reconciler = &Reconciler{
		Client: f.client, Applier: apply.New(f.client), Recorder: events.NewFakeRecorder(1000), Clock: f.clock,
		Connector: f.connector, ProviderName: instance, Environment: "e", Namespace: f.namespace, TokenLifetime: time.Hour,
	}
}

// ready does what CAPI and the controller of Clusters do when a cluster is ready.
func (f *fixture) ready() {
	f.provision()
	f.publish()
}

// provision does what CAPI does.
func (f *fixture) provision() {
	live := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: f.namespace},
		Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{
			ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: "v1.36.0",
		}},
	}
	f.Expect(env.Client.Create(f.ctx, live)).To(Succeed())
	f.writeKubeconfig(env.Kubeconfig)
}

// start runs the Reconciler in a manager until the test ends.
func (f *fixture) start(mgr ctrl.Manager) {
	f.connector = remote.NewConnector(mgr.GetClient())
	f.reconciler = &Reconciler{
		Client: mgr.GetClient(), Applier: apply.New(mgr.GetClient()), Recorder: events.NewFakeRecorder(1000), Clock: clock.RealClock{},
		Connector: f.connector, ProviderName: instance, Environment: "e", Namespace: f.namespace,
	}
	f.Expect(f.reconciler.SetupWithManager(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	f.t.Cleanup(func() {
		cancel()
		f.Expect(<-done).To(Succeed())
	})
}

// publish sets the status of the Cluster.
func (f *fixture) publish() {
	f.Expect(f.cluster.Status.SetProviderStatus(map[string]string{"clusterName": "one", "namespace": f.namespace})).To(Succeed())
	f.cluster.Status.Endpoints = clustersv1.Endpoints{{Name: "apiserver-external", URL: env.Config.Host}}
	f.Expect(env.Client.Status().Update(f.ctx, f.cluster)).To(Succeed())
}

// writeKubeconfig writes the admin kubeconfig as CAPI does.
func (f *fixture) writeKubeconfig(raw []byte) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "one-kubeconfig", Namespace: f.namespace, Labels: map[string]string{clusterv1.ClusterNameLabel: "one"},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": raw},
	}
	err := env.Client.Create(f.ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = env.Client.Update(f.ctx, secret)
	}
	f.Expect(err).NotTo(HaveOccurred())
}

// mayRead are rules that let read a resource.
func mayRead(resource string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get", "list"}}}
}

// request makes an AccessRequest as it is after openmcp-operator has resolved it.
func (f *fixture) request(name string, token *clustersv1.TokenConfig) *clustersv1.AccessRequest {
	return f.create(&clustersv1.AccessRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: f.namespace, Labels: map[string]string{
				clustersv1.ProviderLabel: instance, clustersv1.ProfileLabel: f.namespace,
			},
		},
		Spec: clustersv1.AccessRequestSpec{
			ClusterRef: &commonapi.ObjectReference{Name: f.cluster.Name, Namespace: f.cluster.Namespace}, Token: token,
		},
	})
}

func (f *fixture) create(request *clustersv1.AccessRequest) *clustersv1.AccessRequest {
	f.Expect(env.Client.Create(f.ctx, request)).To(Succeed())
	return f.handOver(request)
}

// handOver does what openmcp-operator does whenever the generation of a request changes.
func (f *fixture) handOver(request *clustersv1.AccessRequest) *clustersv1.AccessRequest {
	request.Status.Phase, request.Status.ObservedGeneration = clustersv1.REQUEST_PENDING, request.Generation
	f.Expect(env.Client.Status().Update(f.ctx, request)).To(Succeed())
	return request
}

// change changes the spec of a request, and hands it over again.
func (f *fixture) change(request *clustersv1.AccessRequest, change func(*clustersv1.AccessRequest)) {
	f.Expect(env.Client.Get(f.ctx, client.ObjectKeyFromObject(request), request)).To(Succeed())
	change(request)
	f.Expect(env.Client.Update(f.ctx, request)).To(Succeed())
	f.handOver(request)
}

// reconcile reconciles a request once, and returns it as it is then; nil when it is gone.
func (f *fixture) reconcile(request *clustersv1.AccessRequest) (*clustersv1.AccessRequest, ctrl.Result) {
	key := client.ObjectKeyFromObject(request)
	result, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: key})
	f.Expect(err).NotTo(HaveOccurred())
	live := &clustersv1.AccessRequest{}
	if err := env.Client.Get(f.ctx, key, live); apierrors.IsNotFound(err) {
		return nil, result
	} else if err != nil {
		f.Expect(err).NotTo(HaveOccurred())
	}
	return live, result
}

// grant reconciles a request, and expects that it is granted.
func (f *fixture) grant(request *clustersv1.AccessRequest) *clustersv1.AccessRequest {
	live, result := f.reconcile(request)
	f.Expect(live.Status.Phase).To(Equal(clustersv1.REQUEST_GRANTED), "%+v", live.Status.Conditions)
	f.Expect(live.Status.SecretRef).NotTo(BeNil())
	f.Expect(result.RequeueAfter).To(BeNumerically(">", 0))
	return live
}

// secret returns the Secret of a request.
func (f *fixture) secret(request *clustersv1.AccessRequest) *corev1.Secret {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: request.Namespace, Name: secretName(request.Name)}
	f.Expect(env.Client.Get(f.ctx, key, secret)).To(Succeed())
	return secret
}

// consumer returns a client with the kubeconfig of a request.
func (f *fixture) consumer(request *clustersv1.AccessRequest) client.Client {
	config, err := clientcmd.RESTConfigFromKubeConfig(f.secret(request).Data[clustersv1.SecretKeyKubeconfig])
	f.Expect(err).NotTo(HaveOccurred())
	config.Host = env.Config.Host // also when a test has changed it
	c, err := client.New(config, client.Options{Scheme: env.Client.Scheme()})
	f.Expect(err).NotTo(HaveOccurred())
	return c
}

// may says whether the consumer may list objects.
func (f *fixture) may(c client.Client, list client.ObjectList, opts ...client.ListOption) bool {
	err := c.List(f.ctx, list, opts...)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return false
	}
	f.Expect(err).NotTo(HaveOccurred())
	return true
}

// eventuallyMay expects that the consumer may list objects: RBAC takes a moment to see a change.
func (f *fixture) eventuallyMay(c client.Client, want bool, list client.ObjectList, opts ...client.ListOption) {
	f.t.Helper()
	f.Eventually(func() bool { return f.may(c, list, opts...) }).Should(Equal(want), "%T", list)
}

// remains counts what is left in the cluster of a request's objects.
func (f *fixture) remains(request *clustersv1.AccessRequest) int {
	g := f.reconciler.newGrantor(env.Client, request)
	count := 0
	f.Expect(g.prune(f.ctx, func(client.Object) bool { count++; return true })).To(Succeed())
	return count
}
