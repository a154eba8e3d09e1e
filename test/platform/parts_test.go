// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package platform_test

import (
	"fmt"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/cluster-provider-capi/test/platform"
)

const certificate = `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web, namespace: default}
spec:
  secretName: web-tls
  dnsNames: [web.default.svc]
  issuerRef: {kind: ClusterIssuer, name: selfsigned}
`

func TestCertificateIsIssued(t *testing.T) {
	apply(t, certificate)
	awaitReady(t, certificate)
	g := NewWithT(t)
	secret := &corev1.Secret{}
	g.Expect(kubeClient.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web-tls"}, secret)).To(Succeed())
	g.Expect(secret.Data).To(HaveKeyWithValue("tls.crt", Not(BeEmpty())))
}

const release = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: operator, namespace: flux-system}
spec:
  interval: 10m
  releaseName: operator
  targetNamespace: operator
  install: {createNamespace: true}
  chartRef: {kind: OCIRepository, name: operator}
`

func TestChartIsInstalledAndItsWebhookCalled(t *testing.T) {
	g := soon(t)
	const source = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: operator, namespace: flux-system}
spec:
  interval: 10m
  insecure: true
  url: oci://%s/charts/cluster-api-operator
  ref: {tag: 0.29.0}
  layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: copy}
---`
	apply(t, source+release, underTest.Registry())
	awaitReady(t, release)
	all, err := pods(t.Context(), "operator")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveLen(1))
	g.Expect(all[0].Status.Phase).To(Equal(corev1.PodRunning))
	g.Expect(all[0].Spec.Containers[0].Image).To(Equal(platform.OperatorImage))

	provider := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.cluster.x-k8s.io/v1alpha2", "kind": "CoreProvider",
		"metadata": map[string]any{"name": "cluster-api", "namespace": "default"},
		"spec":     map[string]any{"configSecret": map[string]any{"name": "variables"}},
	}}
	var created *unstructured.Unstructured
	g.Eventually(func() error {
		created = provider.DeepCopy()
		return kubeClient.Create(t.Context(), created, client.DryRunAll)
	}).Should(Succeed())
	namespace, _, err := unstructured.NestedString(created.Object, "spec", "configSecret", "namespace")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(namespace).To(Equal("default"), "the operator's webhook fills in the namespace")
}

func TestGitRepositoryFollowsCommits(t *testing.T) {
	if underTest.GitURL() == "" {
		t.Skip("there is no git command")
	}
	g := soon(t)
	const repository = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: config, namespace: flux-system}
spec: {interval: 1s, url: %s/config, ref: {branch: main}}
`
	const kustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: config, namespace: flux-system}
spec: {interval: 10m, prune: true, path: ./, sourceRef: {kind: GitRepository, name: config}}
`
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-git, namespace: default}\ndata: {commit: %q}\n"
	for _, text := range []string{"one", "two"} {
		commit, err := underTest.PutGit("config", platform.Files{"config.yaml": fmt.Appendf(nil, configMap, text)})
		g.Expect(err).NotTo(HaveOccurred())
		apply(t, repository+"---"+kustomization, underTest.GitURL())
		applied := &corev1.ConfigMap{}
		g.Eventually(func(g Gomega) {
			g.Expect(kubeClient.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "from-git"}, applied)).To(Succeed())
			g.Expect(applied.Data).To(HaveKeyWithValue("commit", text))
		}).Should(Succeed(), commit)
	}
}

func TestProviderIsPublishedAsTheOperatorFetchesIt(t *testing.T) {
	g := NewWithT(t)
	g.Expect(underTest.PublishLocal(t.Context(), "v0.1.1")).To(Succeed())
	for _, artifact := range []string{"capi/core:v1.14.2", "capi/local:v0.1.0", "capi/local:v0.2.0", "capi/local:v0.1.1"} {
		ref, err := name.ParseReference(underTest.Registry()+"/"+artifact, name.Insecure)
		g.Expect(err).NotTo(HaveOccurred())
		image, err := remote.Image(ref, remote.WithContext(t.Context()))
		g.Expect(err).NotTo(HaveOccurred(), artifact)
		manifest, err := image.Manifest()
		g.Expect(err).NotTo(HaveOccurred())
		var titles []string
		for _, layer := range manifest.Layers {
			titles = append(titles, layer.Annotations["org.opencontainers.image.title"])
		}
		g.Expect(titles).To(ConsistOf("components.yaml", "metadata.yaml"), artifact)
	}
}

func TestClusterRequestIsScheduled(t *testing.T) {
	g := soon(t)
	apply(t, `
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: ClusterProfile
metadata: {name: e2e.capi.local.small}
spec:
  providerRef: {name: capi}
  providerConfigRef: {name: default}
  supportedVersions: [{version: 1.36.3}]
---
apiVersion: v1
kind: Namespace
metadata: {name: project}
---
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: ClusterRequest
metadata: {name: exclusive, namespace: project}
spec: {purpose: mcp}
---
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: ClusterRequest
metadata: {name: shared, namespace: project}
spec: {purpose: workload}
`)
	clusters := &unstructured.UnstructuredList{}
	clusters.SetGroupVersionKind(schema.GroupVersionKind{Group: "clusters.openmcp.cloud", Version: "v1alpha1", Kind: "ClusterList"})
	g.Eventually(func(g Gomega) {
		g.Expect(kubeClient.List(t.Context(), clusters, client.InNamespace("project"))).To(Succeed())
		g.Expect(clusters.Items).To(HaveLen(2))
	}).Should(Succeed())
	var tenancies []any
	for _, cluster := range clusters.Items {
		spec, _, err := unstructured.NestedMap(cluster.Object, "spec")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(spec).To(HaveKeyWithValue("profile", "e2e.capi.local.small"))
		tenancies = append(tenancies, spec["tenancy"])
	}
	g.Expect(tenancies).To(ConsistOf("Exclusive", "Shared"))
}
