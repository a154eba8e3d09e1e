// SPDX-License-Identifier: Apache-2.0

package gitops_test

import (
	"bytes"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// input returns an Input with the built-in defaults.
func input(spec providerv1.ProviderConfigSpec) gitops.Input {
	spec.ProviderRef.Name = "capi"
	return gitops.Input{
		Instance: "capi", Namespace: "openmcp-system", Environment: "default", Config: "config", Release: "v0.1.0",
		Spec: spec, Defaults: gitops.DefaultDefaults("v0.1.0"),
	}
}

func TestBuildNamesTheFieldThatIsWrong(t *testing.T) {
	g := NewWithT(t)
	in := input(providerv1.ProviderConfigSpec{Providers: []providerv1.Provider{{Type: "weird", Name: "x"}}})
	_, err := gitops.Build(in)
	g.Expect(err).To(MatchError(ContainSubstring("spec.providers[0].type")))

	in = input(providerv1.ProviderConfigSpec{})
	in.Defaults = gitops.Defaults{}
	_, err = gitops.Build(in)
	g.Expect(err).To(MatchError(ContainSubstring("spec.operator.chart")))
}

func TestHelmReleasesAreTriedAgainAndNeverTakenBack(t *testing.T) {
	g := NewWithT(t)
	bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{
		CertManager: providerv1.CertManagerSpec{Management: providerv1.Managed},
		Interval:    &metav1.Duration{Duration: time.Hour},
	}))
	g.Expect(err).NotTo(HaveOccurred())
	for _, part := range []gitops.Part{bundle.CertManager, bundle.Operator} {
		release, ok := part.Installer.(*helmv2.HelmRelease)
		g.Expect(ok).To(BeTrue())
		g.Expect(release.Spec.Install.Strategy.Name).To(Equal("RetryOnFailure"))
		g.Expect(release.Spec.Upgrade.Strategy.Name).To(Equal("RetryOnFailure"))
		g.Expect(release.Spec.Install.Remediation).To(BeNil())
		g.Expect(release.Spec.Upgrade.Remediation).To(BeNil())
		g.Expect(release.Spec.Upgrade.CRDs).To(Equal(helmv2.CreateReplace))
		g.Expect(release.Spec.DriftDetection.Mode).To(Equal(helmv2.DriftDetectionEnabled))
		g.Expect(release.Spec.Interval.Duration).To(Equal(time.Hour))
	}
	operator, _ := bundle.Operator.Installer.(*helmv2.HelmRelease)
	g.Expect(operator.Spec.DependsOn).To(Equal([]helmv2.DependencyReference{{Name: "capi-cert-manager"}}))
}

func TestValuesAreMergedAsHelmDoes(t *testing.T) {
	g := NewWithT(t)
	bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{Operator: providerv1.OperatorSpec{
		Values: &apiextensionsv1.JSON{Raw: []byte(`{"watchConfigMap": null, "resources": {"a": 1}}`)},
	}}))
	g.Expect(err).NotTo(HaveOccurred())
	release, _ := bundle.Operator.Installer.(*helmv2.HelmRelease)
	g.Expect(release.Spec.Values.Raw).To(MatchJSON(`{"watchConfigSecret": true, "resources": {"a": 1}}`))
}

func TestSuspendReachesEveryFluxObject(t *testing.T) {
	g := NewWithT(t)
	bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{
		Suspend: true, CertManager: providerv1.CertManagerSpec{Management: providerv1.Managed},
		Providers: []providerv1.Provider{{Type: providerv1.InfrastructureType, Name: "x", Version: "v1.0.0"}},
	}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bundle.Objects()).To(HaveLen(7))
	for _, obj := range bundle.Objects() {
		g.Expect(gitops.FluxHealth(obj).Reason).To(Equal(providerv1.ReasonSuspended), obj.GetName())
	}
}

func TestProvidersDependOnCoreAndComeFromTheProviderSet(t *testing.T) {
	g := NewWithT(t)
	spec := providerv1.ProviderConfigSpec{
		Providers: []providerv1.Provider{{Type: providerv1.ControlPlaneType, Name: "kubeadm", Version: "v1.0.0"}},
		ProviderSource: &providerv1.ProviderSource{
			SourceRef: &providerv1.SourceReference{Kind: "GitRepository", Name: "platform", Namespace: "flux-system"}, Path: "./sets",
		},
	}
	bundle, err := gitops.Build(input(spec))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bundle.ProviderSet.Objects).To(BeEmpty(), "the platform owner brings the source")
	kustomization, _ := bundle.Providers[0].Installer.(*kustomizev1.Kustomization)
	g.Expect(kustomization.Name).To(Equal("capi-controlplane-kubeadm"))
	g.Expect(kustomization.Spec.DependsOn).To(Equal([]kustomizev1.DependencyReference{{Name: "capi-core"}}))
	g.Expect(kustomization.Spec.SourceRef.Kind).To(Equal("GitRepository"))
	g.Expect(kustomization.Spec.SourceRef.Namespace).To(Equal("flux-system"))
	g.Expect(kustomization.Spec.Path).To(Equal("./sets/providers/controlplane"))
	g.Expect(kustomization.Spec.Prune).To(BeTrue())
	g.Expect(kustomization.Spec.PostBuild.Substitute).To(HaveKeyWithValue("PROVIDER_NAMESPACE", "kubeadm-controlplane-system"))
}

func TestChartFromAnOCIRegistry(t *testing.T) {
	for version, want := range map[string]sourcev1.OCIRepositoryRef{
		"0.29.0": {Tag: "0.29.0"}, "0.29.x": {SemVer: "0.29.x"}, ">=0.29.0": {SemVer: ">=0.29.0"},
	} {
		g := NewWithT(t)
		bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{Operator: providerv1.OperatorSpec{Chart: &providerv1.Chart{
			OCI: &sourcev1.OCIRepositorySpec{URL: "oci://registry.example.org/chart"}, Version: version,
		}}}))
		g.Expect(err).NotTo(HaveOccurred())
		source, _ := bundle.Operator.Source.(*sourcev1.OCIRepository)
		g.Expect(source.Spec.Reference).To(Equal(&want))
		g.Expect(source.Spec.LayerSelector.Operation).To(Equal(sourcev1.OCILayerCopy))
		release, _ := bundle.Operator.Installer.(*helmv2.HelmRelease)
		g.Expect(release.Spec.ChartRef.Name).To(Equal(source.Name))
	}
}

func TestDefaultsFillInWhatIsLeftOut(t *testing.T) {
	g := NewWithT(t)
	defaults := gitops.DefaultDefaults("v0.1.0")
	full := defaults.Complete(providerv1.ProviderConfigSpec{})
	g.Expect(full.Core.Version).To(Equal(defaults.Core.Version))
	g.Expect(full.Core.FeatureGates).To(HaveKeyWithValue("ClusterTopology", true))
	g.Expect(full.CertManager.Management).To(Equal(providerv1.External))

	own := defaults.Complete(providerv1.ProviderConfigSpec{Core: providerv1.CoreProvider{
		Version: "v1.13.0", ProviderOptions: providerv1.ProviderOptions{FeatureGates: map[string]bool{}},
	}})
	g.Expect(own.Core.Version).To(Equal("v1.13.0"))
	g.Expect(own.Core.FeatureGates).To(BeEmpty())
}

func TestWriteYAMLLeavesOutWhatTheServerAdds(t *testing.T) {
	g := NewWithT(t)
	objs, err := gitops.Render(input(providerv1.ProviderConfigSpec{Profiles: []providerv1.Profile{{Name: "small"}}}))
	g.Expect(err).NotTo(HaveOccurred())
	var first, second bytes.Buffer
	g.Expect(gitops.WriteYAML(&first, objs...)).To(Succeed())
	g.Expect(gitops.WriteYAML(&second, objs...)).To(Succeed())
	g.Expect(first.String()).To(Equal(second.String()))
	g.Expect(first.String()).NotTo(Or(ContainSubstring("creationTimestamp"), ContainSubstring("status:")))
	g.Expect(first.String()).To(ContainSubstring("name: default.capi.config.small"))
}

func TestBuildRefusesWhatKustomizeCannotCarry(t *testing.T) {
	g := NewWithT(t)
	_, err := gitops.Build(input(providerv1.ProviderConfigSpec{Providers: []providerv1.Provider{{
		Type: providerv1.InfrastructureType, Name: "x", Version: "v1.0.0", ProviderOptions: providerv1.ProviderOptions{
			Patches: []*operatorv1.Patch{{Patch: "a"}, {Patch: "\t- op: add\n"}},
		},
	}}}))
	g.Expect(err).To(MatchError(ContainSubstring("infrastructure-x: patches[1].patch: a text of several lines must not begin with a tab")))
}
