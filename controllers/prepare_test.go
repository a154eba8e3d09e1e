// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/openmcp-project/cluster-provider-capi/api/install"
	"github.com/openmcp-project/cluster-provider-capi/controllers"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// bareServer starts an API server without any CRDs.
func bareServer(t *testing.T) client.Client {
	t.Helper()
	g := NewWithT(t)
	server := &envtest.Environment{BinaryAssetsDirectory: os.Getenv("KUBEBUILDER_ASSETS"), ControlPlaneStartTimeout: time.Minute}
	config, err := server.Start()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(server.Stop()).To(Succeed()) })
	c, err := client.New(config, client.Options{Scheme: install.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

// serve makes the API server serve a kind of any content.
func serve(g *WithT, c client.Client, gvk schema.GroupVersionKind) {
	preserve := true
	plural, _ := apimeta.UnsafeGuessKindToResource(gvk)
	g.Expect(c.Create(context.Background(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: gvk.Kind, ListKind: gvk.Kind + "List", Plural: plural.Resource, Singular: strings.ToLower(gvk.Kind),
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	})).To(Succeed())
}

// prepare runs Prepare until it waits for something, and returns what it said on the way.
func prepare(t *testing.T, c client.Client) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var said strings.Builder
	id := controllers.Identity{
		ProviderName: "capi", Environment: "e", Namespace: "default", Release: "v0.1.0", Defaults: gitops.DefaultDefaults("v0.1.0"),
	}
	err := controllers.Prepare(ctx, c, id, func(message string) {
		mu.Lock()
		defer mu.Unlock()
		said.WriteString(message + "\n")
		if strings.Contains(message, "waiting:") {
			cancel()
		}
	})
	return said.String(), err
}

// TestPrepareNamesTheOneThingThatIsMissing starts with a platform cluster that has nothing, and gives it what is asked
// for, one after the other.
func TestPrepareNamesTheOneThingThatIsMissing(t *testing.T) {
	g := NewWithT(t)
	c := bareServer(t)

	said, err := prepare(t, c)
	g.Expect(err).To(MatchError(And(ContainSubstring("FluxMissing"), ContainSubstring("install Flux"))))
	g.Expect(said).To(ContainSubstring("CRD providerconfigs.capi.cluster.open-control-plane.io is installed"))

	for _, kind := range []string{"OCIRepository", "GitRepository", "HelmRepository", "Bucket"} {
		serve(g, c, sourcev1.GroupVersion.WithKind(kind))
	}
	serve(g, c, kustomizev1.GroupVersion.WithKind("Kustomization"))
	serve(g, c, helmv2.GroupVersion.WithKind("HelmRelease"))
	g.Eventually(func() error { _, err := prepare(t, c); return err }).WithTimeout(time.Minute).Should(
		MatchError(And(ContainSubstring("CertManagerMissing"), ContainSubstring("install cert-manager"))))

	for _, kind := range []string{"Certificate", "Issuer"} {
		serve(g, c, schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: kind})
	}
	g.Eventually(func() error { _, err := prepare(t, c); return err }).WithTimeout(time.Minute).Should(
		MatchError(And(ContainSubstring("OperatorReady"), ContainSubstring("HelmRelease default/capi-operator"))))
}
