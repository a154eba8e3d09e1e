// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	"github.com/openmcp-project/openmcp-operator/api/constants"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

func requestFor(obj client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}

// podsReader asks for something.
func podsReader() *clustersv1.TokenConfig {
	return &clustersv1.TokenConfig{Permissions: []clustersv1.PermissionsRequest{{Rules: mayRead("pods")}}}
}

func TestIdleCostsNothing(t *testing.T) {
	f := newFixture(t)
	f.ready()
	request := f.grant(f.request("app", podsReader()))
	f.writes.Store(0)
	f.calls.Store(0)
	for range 3 {
		f.grant(request)
	}
	f.Expect(f.writes.Load()).To(BeZero(), "writes")
	f.Expect(f.calls.Load()).To(BeZero(), "remote calls")

	f.restart()
	token := f.secret(request).Data[clustersv1.SecretKeyToken]
	f.grant(request)
	f.Expect(f.writes.Load()).To(BeZero(), "writes after a restart")
	f.Expect(f.calls.Load()).NotTo(BeZero(), "one look after a restart")
	f.Expect(f.secret(request).Data[clustersv1.SecretKeyToken]).To(Equal(token))
	f.calls.Store(0)
	f.grant(request)
	f.Expect(f.calls.Load()).To(BeZero())
}

func TestRenewsInTime(t *testing.T) {
	f := newFixture(t)
	f.ready()
	request := f.request("app", podsReader())
	_, result := f.reconcile(request)
	f.Expect(result.RequeueAfter).To(And(
		BeNumerically(">=", 44*time.Minute), BeNumerically("<=", 48*time.Minute+time.Second)), "80 %% of an hour, or a little earlier")
	token := f.secret(request).Data[clustersv1.SecretKeyToken]
	f.Expect(f.reconciler.Expiries()).To(HaveKeyWithValue(
		client.ObjectKeyFromObject(request), BeTemporally("~", time.Now().Add(time.Hour), time.Minute)))
	metrics := make(chan prometheus.Metric, 10)
	f.reconciler.Collector().Collect(metrics)
	f.Expect(metrics).To(HaveLen(1))

	f.clock.SetTime(f.clock.Now().Add(result.RequeueAfter - time.Minute))
	f.grant(request)
	f.Expect(f.secret(request).Data[clustersv1.SecretKeyToken]).To(Equal(token))
	f.clock.SetTime(f.clock.Now().Add(time.Minute))
	f.grant(request)
	f.Expect(f.secret(request).Data[clustersv1.SecretKeyToken]).NotTo(Equal(token))
	f.eventuallyMay(f.consumer(request), true, &corev1.PodList{})
}

func TestRepairsTheSecret(t *testing.T) {
	f := newFixture(t)
	f.ready()
	request := f.grant(f.request("app", podsReader()))
	for name, damage := range map[string]func(*corev1.Secret){
		"no token":           func(s *corev1.Secret) { delete(s.Data, clustersv1.SecretKeyToken) },
		"another token":      func(s *corev1.Secret) { s.Data[clustersv1.SecretKeyToken] = []byte("x") },
		"broken kubeconfig":  func(s *corev1.Secret) { s.Data[clustersv1.SecretKeyKubeconfig] = []byte("x") },
		"no expiry":          func(s *corev1.Secret) { delete(s.Data, clustersv1.SecretKeyExpirationTimestamp) },
		"unreadable expiry":  func(s *corev1.Secret) { s.Data[clustersv1.SecretKeyExpirationTimestamp] = []byte("soon") },
		"a later expiry":     func(s *corev1.Secret) { s.Data[clustersv1.SecretKeyExpirationTimestamp] = []byte("99999999999") },
		"no label":           func(s *corev1.Secret) { s.Labels = nil },
		"nothing left of it": func(s *corev1.Secret) { s.Data = nil },
	} {
		secret := f.secret(request)
		damage(secret)
		f.Expect(env.Client.Update(f.ctx, secret)).To(Succeed())
		f.grant(request)
		repaired := f.secret(request)
		f.Expect(repaired.Data).To(HaveLen(6), name)
		f.Expect(repaired.Labels).To(HaveKeyWithValue(providerv1.ManagedByLabel, instance), name)
		f.eventuallyMay(f.consumer(request), true, &corev1.PodList{})
	}
	f.Expect(env.Client.Delete(f.ctx, f.secret(request))).To(Succeed())
	f.grant(request)
	f.eventuallyMay(f.consumer(request), true, &corev1.PodList{})
}

func TestIssuesAgainWhenTheEndpointChanges(t *testing.T) {
	f := newFixture(t)
	f.ready()
	request := f.grant(f.request("app", podsReader()))
	raw := bytes.ReplaceAll(env.Kubeconfig, []byte("127.0.0.1"), []byte("localhost"))
	f.Expect(raw).NotTo(Equal(env.Kubeconfig))
	f.writeKubeconfig(raw)
	f.grant(request)
	f.Expect(string(f.secret(request).Data[clustersv1.SecretKeyHost])).To(HavePrefix("https://localhost"))
	f.Expect(f.secret(request).Data[clustersv1.SecretKeyKubeconfig]).To(ContainSubstring("https://localhost"))
	f.eventuallyMay(f.consumer(request), true, &corev1.PodList{})

	// The same endpoint with other credentials, as EKS writes every few minutes.
	f.writes.Store(0)
	f.calls.Store(0)
	f.writeKubeconfig(append([]byte("# another version\n"), raw...))
	f.grant(request)
	f.Expect(f.writes.Load() + f.calls.Load()).To(BeZero())
}

func TestIssuesAgainWhenAskedTo(t *testing.T) {
	f := newFixture(t)
	f.ready()
	request := f.grant(f.request("app", podsReader()))
	token := f.secret(request).Data[clustersv1.SecretKeyToken]
	annotate := func(value string) {
		f.Expect(env.Client.Get(f.ctx, client.ObjectKeyFromObject(request), request)).To(Succeed())
		request.Annotations = map[string]string{constants.OperationAnnotation: value}
		f.Expect(env.Client.Update(f.ctx, request)).To(Succeed())
	}
	annotate(constants.OperationAnnotationValueReconcile)
	down := errors.New("down")
	f.broken.Store(&down)
	live, result := f.reconcile(request)
	f.Expect(live).To(testenv.HaveCondition(
		providerv1.ClusterReachableCondition, metav1.ConditionFalse, providerv1.ReasonClusterUnreachable))
	f.Expect(live.Status.Phase).To(Equal(clustersv1.REQUEST_GRANTED), "the token still works")
	f.Expect(result.RequeueAfter).To(Equal(retryRemote))
	f.broken.Store(nil)
	f.clock.SetTime(f.clock.Now().Add(retryRemote))
	f.Expect(f.grant(request).Annotations).To(BeEmpty())
	f.Expect(f.secret(request).Data[clustersv1.SecretKeyToken]).NotTo(Equal(token), "the order is not forgotten")

	annotate(constants.OperationAnnotationValueIgnore)
	f.Expect(env.Client.Delete(f.ctx, f.secret(request))).To(Succeed())
	_, result = f.reconcile(request)
	f.Expect(result).To(Equal(ctrl.Result{}))
}

func TestWithdrawsAnExpiredToken(t *testing.T) {
	f := newFixture(t)
	f.ready()
	request := f.grant(f.request("app", podsReader()))
	down := errors.New("down")
	f.broken.Store(&down)
	f.clock.SetTime(f.clock.Now().Add(50 * time.Minute))
	request, _ = f.reconcile(request)
	f.Expect(request.Status.Phase).To(Equal(clustersv1.REQUEST_GRANTED))
	f.clock.SetTime(f.clock.Now().Add(11 * time.Minute))
	request, _ = f.reconcile(request)
	f.Expect(request.Status.Phase).To(Equal(clustersv1.REQUEST_PENDING))
	f.Expect(request.Status.SecretRef).To(BeNil())
	f.Expect(f.reconciler.readSecret(f.ctx, request)).To(BeNil())
	f.broken.Store(nil)
	f.clock.SetTime(time.Now())
	f.restart()
	f.grant(request)
}

func TestSaysThatTheClocksDiffer(t *testing.T) {
	f := newFixture(t)
	f.ready()
	f.clock.SetTime(time.Now().Add(2 * time.Hour))
	request, result := f.reconcile(f.request("app", podsReader()))
	f.Expect(request).To(testenv.HaveCondition(
		providerv1.KubeconfigIssuedCondition, metav1.ConditionFalse, providerv1.ReasonRejected))
	f.Expect(request.Status.Phase).To(Equal(clustersv1.REQUEST_PENDING))
	f.Expect(request.Status.SecretRef).To(BeNil())
	f.Expect(result.RequeueAfter).To(Equal(retryRemote))
}

func TestDeletionCleansUp(t *testing.T) {
	f := newFixture(t)
	f.ready()
	request := f.grant(f.request("app", &clustersv1.TokenConfig{
		Permissions: []clustersv1.PermissionsRequest{{Rules: mayRead("pods")}, {Namespace: f.namespace, Rules: mayRead("secrets")}},
		RoleRefs:    []commonapi.RoleRef{{Kind: "ClusterRole", Name: "view"}},
	}))
	f.Expect(f.remains(request)).To(Equal(6))
	c := f.consumer(request)
	down := errors.New("down")
	f.broken.Store(&down)
	f.Expect(env.Client.Delete(f.ctx, request)).To(Succeed())
	live, result := f.reconcile(request)
	f.Expect(live).To(testenv.HaveCondition(
		providerv1.PermissionsRevokedCondition, metav1.ConditionFalse, providerv1.ReasonClusterUnreachable))
	f.Expect(result.RequeueAfter).To(Equal(retryRemote))

	f.broken.Store(nil)
	f.clock.SetTime(f.clock.Now().Add(retryRemote))
	gone, _ := f.reconcile(request)
	f.Expect(gone).To(BeNil())
	f.Expect(f.remains(request)).To(BeZero())
	f.Expect(f.reconciler.readSecret(f.ctx, request)).To(BeNil())
	f.Expect(f.reconciler.Expiries()).To(BeEmpty())
	f.Eventually(func() error { return c.List(f.ctx, &corev1.PodList{}) }).Should(HaveOccurred())
}

func TestLetsGoOfAClusterThatIsGone(t *testing.T) {
	for name, vanish := range map[string]func(*fixture){
		"the Cluster": func(f *fixture) { f.Expect(env.Client.Delete(f.ctx, f.cluster)).To(Succeed()) },
		"the Cluster is going": func(f *fixture) {
			f.Expect(env.Client.Get(f.ctx, client.ObjectKeyFromObject(f.cluster), f.cluster)).To(Succeed())
			f.cluster.Finalizers = []string{providerv1.ClusterFinalizer}
			f.Expect(env.Client.Update(f.ctx, f.cluster)).To(Succeed())
			f.Expect(env.Client.Delete(f.ctx, f.cluster)).To(Succeed())
		},
		"the CAPI Cluster": func(f *fixture) {
			f.Expect(env.Client.Delete(f.ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: f.namespace}})).To(Succeed())
		},
		"the admin kubeconfig, for long": func(f *fixture) {
			f.Expect(env.Client.Delete(f.ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "one-kubeconfig", Namespace: f.namespace}})).To(Succeed())
			f.clock.SetTime(time.Now().Add(revokeGrace + time.Minute))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ready()
			request := f.grant(f.request("app", podsReader()))
			down := errors.New("down")
			f.broken.Store(&down)
			vanish(f)
			f.Expect(env.Client.Delete(f.ctx, request)).To(Succeed())
			gone, _ := f.reconcile(request)
			f.Expect(gone).To(BeNil())
		})
	}
	t.Run("not at once when only the admin kubeconfig is missing", func(t *testing.T) {
		f := newFixture(t)
		f.ready()
		request := f.grant(f.request("app", podsReader()))
		f.Expect(env.Client.Delete(f.ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "one-kubeconfig", Namespace: f.namespace}})).To(Succeed())
		f.Expect(env.Client.Delete(f.ctx, request)).To(Succeed())
		held, result := f.reconcile(request)
		f.Expect(held).To(testenv.HaveCondition(
			providerv1.PermissionsRevokedCondition, metav1.ConditionFalse, providerv1.ReasonClusterNotReady))
		f.Expect(result.RequeueAfter).To(BeNumerically("~", revokeGrace, time.Minute))
		f.writeKubeconfig(env.Kubeconfig)
		gone, _ := f.reconcile(request)
		f.Expect(gone).To(BeNil())
		f.Expect(f.remains(request)).To(BeZero())
	})
}

func TestSaysWhyThereIsNoAccess(t *testing.T) {
	f := newFixture(t)
	request := f.request("app", podsReader())
	expect := func(condition, reason, message string) {
		t.Helper()
		live, _ := f.reconcile(request)
		f.Expect(live.Status.Phase).To(Equal(clustersv1.REQUEST_PENDING))
		f.Expect(live).To(testenv.HaveCondition(condition, metav1.ConditionFalse, reason))
		f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionFalse, reason))
		f.Expect(live.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring(message))))
	}
	expect(providerv1.ClusterFoundCondition, providerv1.ReasonClusterNotReady, "has no endpoint yet")
	f.publish()
	expect(providerv1.ClusterReachableCondition, providerv1.ReasonClusterNotReady, "one-kubeconfig does not exist")
	f.writeKubeconfig([]byte("nonsense"))
	expect(providerv1.ClusterReachableCondition, providerv1.ReasonKubeconfigRefused, "it is not a kubeconfig")
	f.writeKubeconfig(env.Kubeconfig)
	f.grant(request)

	f.Expect(env.Client.Delete(f.ctx, f.cluster)).To(Succeed())
	expect(providerv1.ClusterFoundCondition, providerv1.ReasonClusterNotFound, "does not exist")
	f.Expect(f.reconciler.readSecret(f.ctx, request)).To(BeNil(), "a kubeconfig of a cluster that is gone is withdrawn")
}

func TestIgnoresWhatIsNotOurs(t *testing.T) {
	f := newFixture(t)
	f.ready()
	foreign := f.request("foreign", podsReader())
	foreign.Labels[clustersv1.ProviderLabel] = "other"
	f.Expect(env.Client.Update(f.ctx, foreign)).To(Succeed())
	f.writes.Store(0)
	f.reconcile(foreign)
	f.Expect(f.writes.Load()).To(BeZero())

	// A request with our label leads to no cluster of another provider.
	f.Expect(env.Client.Delete(f.ctx, f.profile)).To(Succeed())
	f.profile.ResourceVersion, f.profile.Spec.ProviderRef.Name = "", "other"
	f.Expect(env.Client.Create(f.ctx, f.profile)).To(Succeed())
	live, _ := f.reconcile(f.request("stray", podsReader()))
	f.Expect(live).To(testenv.HaveCondition(
		providerv1.ClusterFoundCondition, metav1.ConditionFalse, providerv1.ReasonClusterNotFound))
	f.Expect(f.calls.Load()).To(BeZero())
}

func TestTellsNoSecrets(t *testing.T) {
	f := newFixture(t)
	recorder := events.NewFakeRecorder(1000)
	f.reconciler.Recorder = recorder
	var log bytes.Buffer
	f.ctx = logr.NewContext(f.ctx, zap.New(zap.UseDevMode(true), zap.WriteTo(&log)))
	f.publish()
	request := f.request("app", podsReader())
	f.writeKubeconfig([]byte("users: [{user: {token: hidden-token}}]"))
	refused, _ := f.reconcile(request)
	f.writeKubeconfig(env.Kubeconfig)
	f.grant(request)
	token := string(f.secret(request).Data[clustersv1.SecretKeyToken])
	granted, _ := f.reconcile(request)
	close(recorder.Events)
	said := fmt.Sprint(refused, granted, f.reconciler.Expiries(), log.String())
	for event := range recorder.Events {
		said += event
	}
	f.Expect(said).To(ContainSubstring(providerv1.ReasonKubeconfigRefused))
	for _, credential := range []string{token, "hidden-token", "PRIVATE KEY"} {
		f.Expect(said).NotTo(ContainSubstring(credential))
	}
}

func TestIssuesAgainWhenTheCAChanges(t *testing.T) {
	f := newFixture(t)
	f.ready()
	request := f.grant(f.request("app", podsReader()))
	ca := f.secret(request).Data[clustersv1.SecretKeyCA]
	// The same CA with another comment is another CA as far as bytes go: consumers get what the admin kubeconfig has.
	config, err := clientcmd.Load(env.Kubeconfig)
	f.Expect(err).NotTo(HaveOccurred())
	for _, cluster := range config.Clusters {
		cluster.CertificateAuthorityData = append([]byte("# rotated\n"), cluster.CertificateAuthorityData...)
	}
	raw, err := clientcmd.Write(*config)
	f.Expect(err).NotTo(HaveOccurred())
	f.writeKubeconfig(raw)
	f.grant(request)
	f.Expect(f.secret(request).Data[clustersv1.SecretKeyCA]).To(Equal(append([]byte("# rotated\n"), ca...)))
	f.eventuallyMay(f.consumer(request), true, &corev1.PodList{})
}

func TestWatches(t *testing.T) {
	f := newFixture(t)
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{
		Scheme: env.Client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	f.Expect(err).NotTo(HaveOccurred())
	f.start(mgr)
	request := f.request("app", podsReader())
	live := func() *clustersv1.AccessRequest {
		out := &clustersv1.AccessRequest{}
		f.Expect(env.Client.Get(f.ctx, client.ObjectKeyFromObject(request), out)).To(Succeed())
		return out
	}
	phase := func() string { return live().Status.Phase }
	f.Eventually(live).Should(testenv.HaveCondition(
		providerv1.ClusterFoundCondition, metav1.ConditionFalse, providerv1.ReasonClusterNotReady))
	f.publish()
	f.Eventually(live).Should(testenv.HaveCondition(
		providerv1.ClusterReachableCondition, metav1.ConditionFalse, providerv1.ReasonClusterNotReady))
	f.provision()
	f.Eventually(phase).Should(Equal(clustersv1.REQUEST_GRANTED))

	f.Expect(env.Client.Delete(f.ctx, f.secret(request))).To(Succeed())
	f.Eventually(func() error {
		return env.Client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: secretName("app")}, &corev1.Secret{})
	}).Should(Succeed())
	f.writeKubeconfig(bytes.ReplaceAll(env.Kubeconfig, []byte("127.0.0.1"), []byte("localhost")))
	f.Eventually(func() string { return string(f.secret(request).Data[clustersv1.SecretKeyHost]) }).Should(HavePrefix("https://localhost"))
	f.Expect(env.Client.Delete(f.ctx, f.cluster)).To(Succeed())
	f.Eventually(live).Should(testenv.HaveCondition(
		providerv1.ClusterFoundCondition, metav1.ConditionFalse, providerv1.ReasonClusterNotFound))
}
