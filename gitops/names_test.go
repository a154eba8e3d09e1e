// SPDX-License-Identifier: Apache-2.0

package gitops_test

import (
	"fmt"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

func TestNamesOfComponents(t *testing.T) {
	for kind, want := range map[providerv1.ProviderType]struct {
		component, namespace, object string
	}{
		providerv1.CoreType:             {"core", "x-core-system", "CoreProvider"},
		providerv1.InfrastructureType:   {"infrastructure-x", "x-infrastructure-system", "InfrastructureProvider"},
		providerv1.BootstrapType:        {"bootstrap-x", "x-bootstrap-system", "BootstrapProvider"},
		providerv1.ControlPlaneType:     {"controlplane-x", "x-controlplane-system", "ControlPlaneProvider"},
		providerv1.AddonType:            {"addon-x", "x-addon-system", "AddonProvider"},
		providerv1.IPAMType:             {"ipam-x", "x-ipam-system", "IPAMProvider"},
		providerv1.RuntimeExtensionType: {"runtimeextension-x", "x-runtimeextension-system", "RuntimeExtensionProvider"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(gitops.ComponentKey(kind, "x")).To(Equal(want.component))
			g.Expect(gitops.ProviderKey(providerv1.Provider{Type: kind, Name: "x"})).To(
				Equal(client.ObjectKey{Name: "x", Namespace: want.namespace}))
			g.Expect(gitops.ProviderKey(providerv1.Provider{Type: kind, Name: "x", Namespace: "own"}).Namespace).To(Equal("own"))
			obj := gitops.NewProviderObject(kind)
			g.Expect(fmt.Sprintf("%T", obj)).To(Equal("*v1alpha2." + want.object))
			g.Expect(gitops.ProviderTypeOf(obj)).To(Equal(kind))
			g.Expect(gitops.ProviderTypes()).To(ContainElement(kind))
		})
	}
	g := NewWithT(t)
	g.Expect(gitops.ProviderTypes()).To(HaveLen(7))
	g.Expect(gitops.NewProviderObject("weird")).To(BeNil())
	g.Expect(gitops.ProviderTypeOf(operatorv1.GenericProvider(nil))).To(BeEmpty())
}

func TestConfigSecretKey(t *testing.T) {
	g := NewWithT(t)
	p := providerv1.Provider{Type: providerv1.InfrastructureType, Name: "aws"}
	g.Expect(gitops.ConfigSecretKey(p)).To(Equal(client.ObjectKey{}))
	p.ConfigSecretRef = &providerv1.SecretReference{Name: "s"}
	g.Expect(gitops.ConfigSecretKey(p)).To(Equal(client.ObjectKey{Name: "s", Namespace: "aws-infrastructure-system"}))
	p.ConfigSecretRef.Namespace = "other"
	g.Expect(gitops.ConfigSecretKey(p)).To(Equal(client.ObjectKey{Name: "s", Namespace: "other"}))
}

// TestLongNames checks that the longest names that the API takes make legal objects. Flux puts the name of a
// Kustomization or HelmRelease into a label of all that it applies, so these must be label values too.
func TestLongNames(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("x", 40)
	in := input(providerv1.ProviderConfigSpec{
		CertManager: providerv1.CertManagerSpec{Management: providerv1.Managed},
		Providers: []providerv1.Provider{
			{Type: providerv1.RuntimeExtensionType, Name: long, Version: "v1.0.0"},
			{Type: providerv1.RuntimeExtensionType, Name: long[:39] + "y", Version: "v1.0.0"},
		},
		ProviderSets: []providerv1.ProviderSet{{Name: long}},
	})
	in.Instance, in.Config = strings.Repeat("i", 63), strings.Repeat("c", 63)
	bundle, err := gitops.Build(in)
	g.Expect(err).NotTo(HaveOccurred())
	names := map[string]bool{}
	for _, obj := range bundle.Objects() {
		g.Expect(validation.IsValidLabelValue(obj.GetName())).To(BeEmpty(), obj.GetName())
		g.Expect(validation.IsDNS1123Subdomain(obj.GetName())).To(BeEmpty(), obj.GetName())
		for key, value := range obj.GetLabels() {
			g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty(), key)
		}
		names[obj.GetObjectKind().GroupVersionKind().Kind+"/"+obj.GetName()] = true
	}
	g.Expect(names).To(HaveLen(len(bundle.Objects())), "no two may have the same name")
	g.Expect(dependencies(bundle)).To(HaveEach(bundle.Core.Installer.GetName()))
}

// dependencies returns the names that the Kustomizations of a bundle depend on.
func dependencies(bundle gitops.Bundle) []string {
	var names []string
	for _, obj := range bundle.Objects() {
		if kustomization, ok := obj.(*kustomizev1.Kustomization); ok {
			for _, dependency := range kustomization.Spec.DependsOn {
				names = append(names, dependency.Name)
			}
		}
	}
	return names
}
