// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/controlplane/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/proc"
)

// goodConditions are those that a Cluster has when all is well.
var goodConditions = []string{
	clusterv1.AvailableCondition, clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition,
	clusterv1.ClusterControlPlaneAvailableCondition, clusterv1.ClusterWorkersAvailableCondition,
	clusterv1.ClusterRemoteConnectionProbeCondition, clusterv1.ClusterTopologyReconciledCondition,
}

// TestClusterAPIsCore runs the real core of Cluster API, with its webhooks, when its binary is among the assets.
func TestClusterAPIsCore(t *testing.T) {
	binary := filepath.Join(os.Getenv(assets), "cluster-api-core")
	if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no " + binary)
	}
	g := NewWithT(t)
	p, err := startPlatform("webhook/manifests.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(p.stop()).To(Succeed()) })
	p.startCore(t, binary)
	data := t.TempDir()
	p.startProvider(t, data)

	objects, err := readObjects("config/clusterclass.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	for _, obj := range objects {
		// The webhooks need a moment to answer.
		g.Eventually(func() error { return p.client.Create(t.Context(), obj) }, timeout).Should(Succeed())
	}
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "two"},
		Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{
			ClassRef: clusterv1.ClusterClassRef{Name: "local"}, Version: "v1.35.0",
		}},
	}
	g.Eventually(func() error { return p.client.Create(t.Context(), cluster) }, timeout).Should(Succeed())
	p.eventuallyGood(t, cluster, "v1.35.0")

	cluster.Spec.Topology.Version = "v1.36.3"
	g.Expect(p.client.Update(t.Context(), cluster)).To(Succeed())
	p.eventuallyGood(t, cluster, "v1.36.3")

	g.Expect(p.client.Delete(t.Context(), cluster)).To(Succeed())
	g.Eventually(func() bool {
		return apierrors.IsNotFound(p.client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	}, timeout).Should(BeTrue())
	g.Expect(processes(g, data)).To(BeEmpty())
	secrets := &corev1.SecretList{}
	g.Expect(p.client.List(t.Context(), secrets, client.InNamespace("default"))).To(Succeed())
	g.Expect(secrets.Items).To(BeEmpty())
}

// startCore starts the core where the webhooks are called.
func (p *platformCluster) startCore(t *testing.T, binary string) {
	t.Helper()
	health, err := proc.FreePort()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	webhooks := p.WebhookInstallOptions
	cmd := exec.Command(binary, "--leader-elect=false", "--diagnostics-address=127.0.0.1:0", "--insecure-diagnostics",
		fmt.Sprintf("--health-addr=127.0.0.1:%d", health), fmt.Sprintf("--webhook-port=%d", webhooks.LocalServingPort),
		"--webhook-cert-dir="+webhooks.LocalServingCertDir, "--feature-gates=ClusterTopology=true")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.admin, "POD_NAMESPACE=default")
	startProcess(t, cmd)
}

// eventuallyGood waits for a Cluster with a version of which Cluster API has nothing bad to say.
func (p *platformCluster) eventuallyGood(t *testing.T, cluster *clusterv1.Cluster, version string) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		g.Expect(p.client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		plane := &controlplanev1.LocalControlPlane{}
		key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}
		g.Expect(p.client.Get(t.Context(), key, plane)).To(Succeed())
		g.Expect(plane.Status.Version).To(Equal(version))
		g.Expect(plane.Spec.Logging).To(Equal(controlplanev1.LoggingNormal))
		for _, kind := range goodConditions {
			condition := apimeta.FindStatusCondition(cluster.Status.Conditions, kind)
			g.Expect(condition).NotTo(BeNil(), kind)
			g.Expect(condition.Status).To(Equal(metav1.ConditionTrue), kind+": "+condition.Message)
		}
		g.Expect(cluster.Status.ControlPlane.Versions).To(ConsistOf(clusterv1.StatusVersion{Version: version}))
		g.Expect(cluster.Status.Phase).To(Equal("Provisioned"))
	}, timeout).Should(Succeed())
}
