// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
func serve(g *WithT, c client.Client, group, version, kind, plural string) {
	preserve := true
	g.Expect(c.Create(context.Background(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	})).To(Succeed())
}

// prepare runs Prepare until it fails, and returns what it said on the way.
func prepare(t *testing.T, c client.Client) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
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

	for _, kind := range [][3]string{
		{"v1", "OCIRepository", "ocirepositories"}, {"v1", "GitRepository", "gitrepositories"},
		{"v1", "HelmRepository", "helmrepositories"}, {"v1", "Bucket", "buckets"},
	} {
		serve(g, c, "source.toolkit.fluxcd.io", kind[0], kind[1], kind[2])
	}
	serve(g, c, "kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
	serve(g, c, "helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")
	g.Eventually(func() error { _, err := prepare(t, c); return err }).WithTimeout(time.Minute).Should(
		MatchError(And(ContainSubstring("CertManagerMissing"), ContainSubstring("install cert-manager"))))

	serve(g, c, "cert-manager.io", "v1", "Certificate", "certificates")
	serve(g, c, "cert-manager.io", "v1", "Issuer", "issuers")
	g.Eventually(func() error { _, err := prepare(t, c); return err }).WithTimeout(time.Minute).Should(
		MatchError(And(ContainSubstring("OperatorReady"), ContainSubstring("HelmRelease default/capi-operator"))))
}
