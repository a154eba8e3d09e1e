// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

const (
	patience = 20 * time.Second
	interval = 50 * time.Millisecond
)

// requests records the requests that a client sends.
type requests struct {
	http.RoundTripper
	mu    sync.Mutex
	lines []string
}

// RoundTrip sends a request, and records it unless it is a watch.
func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Get("watch") == "" {
		r.mu.Lock()
		r.lines = append(r.lines, req.Method+" "+req.URL.Path)
		r.mu.Unlock()
	}
	return r.RoundTripper.RoundTrip(req)
}

// take returns what was recorded since the last call.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

// writesOf returns those of the requests that write.
func writesOf(lines []string) []string {
	var out []string
	for _, line := range lines {
		if line[:len(http.MethodGet)] != http.MethodGet {
			out = append(out, line)
		}
	}
	return out
}

// start runs the controller with a real manager, and returns what its requests are recorded by.
func (f *fixture) start(t *testing.T) *requests {
	t.Helper()
	sent := &requests{}
	restConfig := rest.CopyConfig(env.Config)
	restConfig.QPS = -1
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		sent.RoundTripper = next
		return sent
	})
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: env.Client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	f.Expect(err).NotTo(HaveOccurred())
	f.reconciler = f.newReconciler(mgr.GetClient())
	f.Expect(f.reconciler.SetupWithManager(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		f.Expect(<-done).To(Succeed())
	})
	f.Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	return sent
}

// eventually waits, with CAPI played, until the Cluster has a condition. Nothing but a watch brings the controller there.
func (f *fixture) eventually(kind string, status metav1.ConditionStatus, reason string) *clustersv1.Cluster {
	live := &clustersv1.Cluster{}
	f.Eventually(func() (*clustersv1.Cluster, error) {
		f.play()
		return live, env.Client.Get(f.ctx, client.ObjectKeyFromObject(f.cluster), live)
	}, patience, interval).Should(testenv.HaveCondition(kind, status, reason))
	return live
}

func (f *fixture) eventuallyGone() {
	f.Eventually(func() bool {
		return apierrors.IsNotFound(env.Client.Get(f.ctx, client.ObjectKeyFromObject(f.cluster), &clustersv1.Cluster{}))
	}, patience, interval).Should(BeTrue())
}

func TestIdleSendsNothing(t *testing.T) {
	f := newFixture(t)
	sent := f.start(t)
	sent.take()
	f.create(f.cluster)
	live := f.eventually(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady)
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseReady))
	f.Eventually(sent.take, patience, time.Second).ShouldNot(BeEmpty())
	f.Eventually(sent.take, patience, time.Second).Should(BeEmpty(), "it comes to rest")
	for range 3 {
		result, err := f.reconciler.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.cluster)})
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(result.RequeueAfter).To(BeZero(), "no polling")
	}
	f.Expect(sent.take()).To(BeEmpty(), "requests although nothing has changed")
}

func TestFewWritesUntilReady(t *testing.T) {
	f := newFixture(t)
	sent := f.start(t)
	sent.take()
	f.create(f.cluster)
	f.eventually(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady)
	writes := writesOf(sent.take())
	f.Expect(len(writes)).To(BeNumerically("<=", 6), "%q", writes)
}

func TestWakesUpForWhatANewClusterWaitsFor(t *testing.T) {
	f := newFixture(t)
	f.Expect(env.Client.Delete(f.ctx, f.class)).To(Succeed())
	f.setProviders(metav1.ConditionFalse)
	f.start(t)
	f.create(f.cluster)
	f.eventually(providerv1.AcceptedCondition, metav1.ConditionFalse, providerv1.ReasonClusterClassNotFound)
	f.class.ResourceVersion = ""
	f.create(f.class)
	f.eventually(providerv1.ProvidersReadyCondition, metav1.ConditionFalse, providerv1.ReasonProvidersNotReady)
	f.Expect(f.capiClusters()).To(BeEmpty())
	f.setProviders(metav1.ConditionTrue)
	f.eventually(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady)

	f.update(func(c *clustersv1.Cluster) { c.Spec.Kubernetes.Version = "1.20" })
	f.eventually(providerv1.AcceptedCondition, metav1.ConditionFalse, providerv1.ReasonVersionNotSupported)
	f.update(func(c *clustersv1.Cluster) { c.Spec.Kubernetes.Version = "" })
	f.eventually(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady)
	f.Expect(env.Client.Delete(f.ctx, f.profile)).To(Succeed())
	f.eventually(providerv1.AcceptedCondition, metav1.ConditionFalse, providerv1.ReasonProfileNotFound)
}

func TestWakesUpWhenANameBecomesFree(t *testing.T) {
	f := newFixture(t)
	foreign := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "team"},
		Spec:       clusterv1.ClusterSpec{Topology: clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "theirs"}, Version: "v1.30.0"}},
	}
	f.create(foreign)
	f.start(t)
	f.create(f.cluster)
	live := &clustersv1.Cluster{}
	f.Eventually(func() (*clustersv1.Cluster, error) {
		return live, env.Client.Get(f.ctx, client.ObjectKeyFromObject(f.cluster), live)
	}, patience, interval).Should(testenv.HaveCondition(providerv1.AcceptedCondition, metav1.ConditionFalse, providerv1.ReasonClusterConflict))
	f.Expect(env.Client.Delete(f.ctx, foreign)).To(Succeed())
	f.eventually(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady)
}

func TestCorrectsDriftAndMakesAnewWhatIsGone(t *testing.T) {
	f := newFixture(t)
	f.start(t)
	f.create(f.cluster)
	f.eventually(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady)
	capi := f.capiClusters()[0]
	capi.Spec.Topology.ClassRef.Name = "theirs"
	capi.Labels["theirs"] = "kept"
	f.Expect(env.Client.Update(f.ctx, &capi)).To(Succeed())
	f.Eventually(func() string { return f.capiClusters()[0].Spec.Topology.ClassRef.Name }, patience, interval).Should(Equal("class"))
	f.Expect(f.capiClusters()[0].Labels).To(HaveKeyWithValue("theirs", "kept"))

	f.Expect(env.Client.Delete(f.ctx, &capi)).To(Succeed())
	f.Eventually(func() bool {
		clusters := f.capiClusters()
		return len(clusters) == 1 && clusters[0].UID != capi.UID
	}, patience, interval).Should(BeTrue())
	f.eventually(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady)
}

func TestWakesUpInEachStepOfADeletion(t *testing.T) {
	f := newFixture(t)
	f.cluster.Finalizers = []string{"example.org/someone", "example.org/another"}
	f.start(t)
	f.create(f.cluster)
	f.eventually(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady)
	capi := f.capiClusters()[0]
	capi.Finalizers = []string{clusterv1.ClusterFinalizer}
	f.Expect(env.Client.Update(f.ctx, &capi)).To(Succeed())
	f.Expect(env.Client.Delete(f.ctx, f.cluster)).To(Succeed())
	f.eventually(providerv1.ForeignFinalizersGoneCondition, metav1.ConditionFalse, providerv1.ReasonWaitingForFinalizers)
	f.update(func(c *clustersv1.Cluster) {
		c.Finalizers = []string{providerv1.ClusterFinalizer, "example.org/another"}
	})
	f.Eventually(func() string {
		live := &clustersv1.Cluster{}
		f.Expect(env.Client.Get(f.ctx, client.ObjectKeyFromObject(f.cluster), live)).To(Succeed())
		return message(live, providerv1.ForeignFinalizersGoneCondition)
	}, patience, interval).Should(HaveSuffix(": example.org/another"))
	f.update(func(c *clustersv1.Cluster) { c.Finalizers = []string{providerv1.ClusterFinalizer} })
	f.eventually(providerv1.ClusterDeletedCondition, metav1.ConditionFalse, providerv1.ReasonDeleting)
	capi = f.capiClusters()[0]
	f.Expect(capi.DeletionTimestamp).NotTo(BeNil())
	capi.Finalizers = nil
	f.Expect(env.Client.Update(f.ctx, &capi)).To(Succeed())
	f.eventuallyGone()
}
