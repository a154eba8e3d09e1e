// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/controlplane/v1alpha1"
	infrav1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/infrastructure/v1alpha1"
)

// scenario is a cluster, and the part that Cluster API's core plays.
type scenario struct {
	*testing.T
	data    string
	cluster *clusterv1.Cluster
	local   *infrav1.LocalCluster
	plane   *controlplanev1.LocalControlPlane
}

func newScenario(t *testing.T) *scenario {
	t.Helper()
	g := NewWithT(t)
	s := &scenario{T: t, data: t.TempDir()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	g.Expect(platform.client.Create(t.Context(), namespace)).To(Succeed())
	s.cluster = &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "one"},
		Spec: clusterv1.ClusterSpec{
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: "one",
			},
			ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: controlplanev1.GroupVersion.Group, Kind: "LocalControlPlane", Name: "one",
			},
		},
	}
	g.Expect(platform.client.Create(t.Context(), s.cluster)).To(Succeed())
	meta := metav1.ObjectMeta{
		Namespace: namespace.Name, Name: "one", Labels: map[string]string{clusterv1.ClusterNameLabel: "one"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.cluster, clusterv1.GroupVersion.WithKind("Cluster"))},
	}
	s.local = &infrav1.LocalCluster{ObjectMeta: meta}
	s.plane = &controlplanev1.LocalControlPlane{
		ObjectMeta: *meta.DeepCopy(), Spec: controlplanev1.LocalControlPlaneSpec{Version: "v1.35.0"},
	}
	g.Expect(platform.client.Create(t.Context(), s.plane)).To(Succeed())
	g.Expect(platform.client.Create(t.Context(), s.local)).To(Succeed())
	return s
}

// surfaceInfrastructure does what the controller of Clusters does with a provisioned LocalCluster.
func (s *scenario) surfaceInfrastructure() {
	s.Helper()
	g := NewWithT(s)
	g.Eventually(func(g Gomega) {
		g.Expect(platform.client.Get(s.Context(), client.ObjectKeyFromObject(s.local), s.local)).To(Succeed())
		g.Expect(s.local.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
		g.Expect(apimeta.IsStatusConditionTrue(s.local.Status.Conditions, "Ready")).To(BeTrue())
		g.Expect(s.local.Status.ObservedGeneration).To(Equal(s.local.Generation))
	}, timeout).Should(Succeed())
	s.patchCluster(func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = s.local.Spec.ControlPlaneEndpoint })
}

func (s *scenario) patchCluster(change func(*clusterv1.Cluster)) {
	s.Helper()
	before := s.cluster.DeepCopy()
	change(s.cluster)
	NewWithT(s).Expect(platform.client.Patch(s.Context(), s.cluster, client.MergeFrom(before))).To(Succeed())
}

func (s *scenario) patchPlane(change func(*controlplanev1.LocalControlPlane)) {
	s.Helper()
	before := s.plane.DeepCopy()
	change(s.plane)
	NewWithT(s).Expect(platform.client.Patch(s.Context(), s.plane, client.MergeFrom(before))).To(Succeed())
}

// eventuallyPlane waits for the control plane to be in a state, as of its latest generation.
func (s *scenario) eventuallyPlane(check func(Gomega, *controlplanev1.LocalControlPlane)) {
	s.Helper()
	NewWithT(s).Eventually(func(g Gomega) {
		g.Expect(platform.client.Get(s.Context(), client.ObjectKeyFromObject(s.plane), s.plane)).To(Succeed())
		g.Expect(s.plane.Status.ObservedGeneration).To(Equal(s.plane.Generation))
		check(g, s.plane)
	}, timeout, 50*time.Millisecond).Should(Succeed())
}

func available(g Gomega, plane *controlplanev1.LocalControlPlane) {
	condition := apimeta.FindStatusCondition(plane.Status.Conditions, controlplanev1.AvailableCondition)
	g.Expect(condition).NotTo(BeNil())
	g.Expect(condition.Status).To(Equal(metav1.ConditionTrue), condition.Message)
	g.Expect(condition.ObservedGeneration).To(Equal(plane.Generation))
	g.Expect(plane.Status.Version).To(Equal(plane.Spec.Version))
}

func (s *scenario) kubeconfigSecret() *corev1.Secret {
	s.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: "one-kubeconfig"}
	NewWithT(s).Expect(platform.client.Get(s.Context(), key, secret)).To(Succeed())
	return secret
}

// workload returns a client for the cluster, from a kubeconfig.
func (s *scenario) workload(kubeconfig []byte) client.Client {
	s.Helper()
	g := NewWithT(s)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	made, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	return made
}

func TestClusterIsARealOneFromCreationToDeletion(t *testing.T) {
	g := NewWithT(t)
	s := newScenario(t)
	provider := platform.startProvider(t, s.data)
	s.eventuallyPlane(func(g Gomega, plane *controlplanev1.LocalControlPlane) {
		g.Expect(apimeta.IsStatusConditionFalse(plane.Status.Conditions, controlplanev1.AvailableCondition)).To(BeTrue())
	})
	s.surfaceInfrastructure()
	s.eventuallyPlane(available)
	g.Expect(s.plane.Status.Initialization.ControlPlaneInitialized).To(HaveValue(BeTrue()))
	g.Expect(s.plane.Status.ExternalManagedControlPlane).To(HaveValue(BeTrue()))
	g.Expect(s.plane.Status.Versions).To(ConsistOf(clusterv1.StatusVersion{Version: "v1.35.0"}))

	secret := s.kubeconfigSecret()
	g.Expect(secret.Type).To(Equal(clusterv1.ClusterSecretType))
	g.Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "one"))
	g.Expect(metav1.IsControlledBy(secret, s.plane)).To(BeTrue())
	workload := s.workload(secret.Data["value"])
	s.expectRealCluster(workload)

	// Both kinds of restarts keep data, endpoint and certificates: the client stays the same.
	s.killServer(workload)
	running := processes(g, s.data)
	g.Expect(syscall.Kill(provider.Pid(), syscall.SIGKILL)).To(Succeed())
	g.Eventually(func(g Gomega) { g.Expect(processes(g, s.data)).To(BeEmpty()) }, timeout).Should(Succeed())
	provider = platform.startProvider(t, s.data)
	g.Eventually(s.readData(workload), timeout).Should(Succeed())
	g.Expect(processes(g, s.data)).NotTo(HaveKeyWithValue("etcd", running["etcd"]))
	g.Expect(s.kubeconfigSecret().Data).To(Equal(secret.Data))

	s.upgrade(workload)
	s.configureAuthentication(workload)
	s.pause(workload)
	s.delete()
	provider.Stop(time.Minute)
	g.Expect(provider.Success()).To(BeTrue(), provider.State())
}

// expectRealCluster asks for what only a real cluster has, and leaves data in it.
func (s *scenario) expectRealCluster(workload client.Client) {
	s.Helper()
	g := NewWithT(s)
	review := &authenticationv1.SelfSubjectReview{}
	g.Expect(workload.Create(s.Context(), review)).To(Succeed())
	g.Expect(review.Status.UserInfo.Groups).To(ContainElement("system:masters"))
	g.Expect(workload.Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}})).To(Succeed())
	if _, err := os.Stat(os.Getenv(assets) + "/kube-controller-manager"); err != nil {
		return
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	g.Eventually(func() error {
		return workload.SubResource("token").Create(s.Context(), account, &authenticationv1.TokenRequest{})
	}, timeout).Should(Succeed())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "passing"}}
	g.Expect(workload.Create(s.Context(), namespace)).To(Succeed())
	g.Expect(workload.Delete(s.Context(), namespace)).To(Succeed())
	g.Eventually(func() bool {
		return apierrors.IsNotFound(workload.Get(s.Context(), client.ObjectKeyFromObject(namespace), namespace))
	}, timeout).Should(BeTrue())
}

// readData reads what expectRealCluster left.
func (s *scenario) readData(workload client.Client) func() error {
	return func() error {
		return workload.Get(s.Context(), client.ObjectKey{Namespace: "default", Name: "data"}, &corev1.ConfigMap{})
	}
}

// killServer lets the API server crash.
func (s *scenario) killServer(workload client.Client) {
	s.Helper()
	g := NewWithT(s)
	pid := processes(g, s.data)["kube-apiserver"]
	g.Expect(pid).NotTo(BeZero())
	g.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
	g.Eventually(s.readData(workload), timeout).Should(Succeed())
	g.Expect(processes(g, s.data)["kube-apiserver"]).NotTo(Equal(pid))
}

func (s *scenario) upgrade(workload client.Client) {
	s.Helper()
	s.eventuallyPlane(available)
	s.patchPlane(func(plane *controlplanev1.LocalControlPlane) { plane.Spec.Version = "v1.36.3" })
	s.eventuallyPlane(func(g Gomega, plane *controlplanev1.LocalControlPlane) {
		g.Expect(apimeta.IsStatusConditionTrue(plane.Status.Conditions, controlplanev1.RollingOutCondition)).To(BeTrue())
		g.Expect(plane.Status.Version).To(Equal("v1.35.0"))
	})
	s.eventuallyPlane(available)
	g := NewWithT(s)
	g.Expect(apimeta.IsStatusConditionFalse(s.plane.Status.Conditions, controlplanev1.RollingOutCondition)).To(BeTrue())
	g.Expect(s.plane.Status.Versions).To(ConsistOf(clusterv1.StatusVersion{Version: "v1.36.3"}))
	g.Expect(s.readData(workload)()).To(Succeed())
}

// configureAuthentication shuts anonymous users out, which the API server lets in otherwise.
func (s *scenario) configureAuthentication(workload client.Client) {
	s.Helper()
	g := NewWithT(s)
	anonymous := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	status := func() (int, error) {
		response, err := anonymous.Get("https://" + s.cluster.Spec.ControlPlaneEndpoint.String() + "/version")
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	g.Expect(status()).To(Equal(http.StatusOK))
	s.patchPlane(func(plane *controlplanev1.LocalControlPlane) {
		plane.Spec.AuthenticationConfig = "kind: Nonsense"
	})
	s.eventuallyPlane(func(g Gomega, plane *controlplanev1.LocalControlPlane) {
		condition := apimeta.FindStatusCondition(plane.Status.Conditions, controlplanev1.AvailableCondition)
		g.Expect(condition.Message).To(ContainSubstring("authentication config"))
	})
	s.patchPlane(func(plane *controlplanev1.LocalControlPlane) {
		plane.Spec.AuthenticationConfig = strings.Join([]string{
			"apiVersion: apiserver.config.k8s.io/v1", "kind: AuthenticationConfiguration", "anonymous: {enabled: false}",
		}, "\n")
	})
	s.eventuallyPlane(available)
	g.Eventually(status, timeout).Should(Equal(http.StatusUnauthorized))
	g.Expect(s.readData(workload)()).To(Succeed())
}

// pause shows that a paused cluster runs on while its objects are left alone.
func (s *scenario) pause(workload client.Client) {
	s.Helper()
	s.patchCluster(func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) })
	NewWithT(s).Eventually(func(g Gomega) {
		g.Expect(platform.client.Get(s.Context(), client.ObjectKeyFromObject(s.plane), s.plane)).To(Succeed())
		g.Expect(apimeta.IsStatusConditionTrue(s.plane.Status.Conditions, clusterv1.PausedCondition)).To(BeTrue())
	}, timeout).Should(Succeed())
	s.killServer(workload)
	s.patchCluster(func(c *clusterv1.Cluster) { c.Spec.Paused = nil })
	s.eventuallyPlane(func(g Gomega, plane *controlplanev1.LocalControlPlane) {
		g.Expect(apimeta.IsStatusConditionFalse(plane.Status.Conditions, clusterv1.PausedCondition)).To(BeTrue())
	})
}

// delete expects that nothing is left.
func (s *scenario) delete() {
	s.Helper()
	g := NewWithT(s)
	for _, obj := range []client.Object{s.plane, s.local} {
		g.Expect(platform.client.Delete(s.Context(), obj)).To(Succeed())
		g.Eventually(func() bool {
			return apierrors.IsNotFound(platform.client.Get(s.Context(), client.ObjectKeyFromObject(obj), obj))
		}, timeout).Should(BeTrue())
	}
	g.Expect(processes(g, s.data)).To(BeEmpty())
	entries, err := os.ReadDir(s.data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(HaveExactElements(HaveField("Name()", "lock")))
	_, err = net.Dial("tcp", s.cluster.Spec.ControlPlaneEndpoint.String())
	g.Expect(err).To(MatchError(syscall.ECONNREFUSED))
	secrets := &corev1.SecretList{}
	g.Expect(platform.client.List(s.Context(), secrets, client.InNamespace(s.cluster.Namespace))).To(Succeed())
	g.Expect(secrets.Items).To(BeEmpty())
}
