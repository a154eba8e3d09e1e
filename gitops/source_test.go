// SPDX-License-Identifier: Apache-2.0

package gitops_test

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// hour and minute are intervals.
var hour, minute = metav1.Duration{Duration: time.Hour}, metav1.Duration{Duration: time.Minute}

func TestChartsFromAllKindsOfSources(t *testing.T) {
	for name, c := range map[string]struct {
		chart                    providerv1.Chart
		source, path, pin, shown string
	}{
		"Helm repository": {
			providerv1.Chart{Helm: &sourcev1.HelmRepositorySpec{URL: "https://x.example.org"}, Version: "1.0.0"},
			"HelmRepository", "cluster-api-operator", "1.0.0", "1.0.0",
		},
		"Helm repository, default version": {
			providerv1.Chart{Helm: &sourcev1.HelmRepositorySpec{URL: "https://x.example.org"}},
			"HelmRepository", "cluster-api-operator", "0.29.0", "0.29.0",
		},
		"another name": {
			providerv1.Chart{Helm: &sourcev1.HelmRepositorySpec{URL: "https://x.example.org"}, ChartName: "operator"},
			"HelmRepository", "operator", "0.29.0", "0.29.0",
		},
		"Git": {
			providerv1.Chart{Git: &sourcev1.GitRepositorySpec{URL: "https://x.example.org/y"}, ChartName: "./charts/operator"},
			"GitRepository", "./charts/operator", "", "",
		},
		"Git, root": {providerv1.Chart{Git: &sourcev1.GitRepositorySpec{URL: "https://x.example.org/y"}}, "GitRepository", "./", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{Operator: providerv1.OperatorSpec{Chart: &c.chart}}))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bundle.Operator.Version).To(Equal(c.shown))
			g.Expect(bundle.Operator.Source.GetObjectKind().GroupVersionKind().Kind).To(Equal(c.source))
			release, _ := bundle.Operator.Installer.(*helmv2.HelmRelease)
			g.Expect(release.Spec.ChartRef).To(BeNil())
			g.Expect(release.Spec.Chart.Spec).To(And(HaveField("Chart", c.path), HaveField("Version", c.pin),
				HaveField("SourceRef.Kind", c.source), HaveField("SourceRef.Name", bundle.Operator.Source.GetName())))
		})
	}
}

func TestProviderSetsFromAllKindsOfSources(t *testing.T) {
	for kind, source := range map[string]providerv1.ProviderSource{
		"OCIRepository": {OCI: &sourcev1.OCIRepositorySpec{URL: "oci://x.example.org/y"}},
		"GitRepository": {Git: &sourcev1.GitRepositorySpec{URL: "https://x.example.org/y"}, Path: "./sets"},
		"Bucket":        {Bucket: &sourcev1.BucketSpec{BucketName: "x", Endpoint: "x.example.org"}, Path: "./sets/"},
	} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{ProviderSource: &source, Interval: &hour}))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bundle.ProviderSet.Source.GetObjectKind().GroupVersionKind().Kind).To(Equal(kind))
			core, _ := bundle.Core.Installer.(*kustomizev1.Kustomization)
			g.Expect(core.Spec.SourceRef.Kind).To(Equal(kind))
			g.Expect(core.Spec.SourceRef.Name).To(Equal(bundle.ProviderSet.Source.GetName()))
			g.Expect(core.Spec.Path).To(Equal(map[bool]string{true: "./sets/providers/core", false: "./providers/core"}[source.Path != ""]))
			g.Expect(core.Spec.Interval).To(Equal(hour))
			g.Expect(core.Spec.DependsOn).To(BeEmpty())
		})
	}
}

// TestASourceKeepsItsOwnIntervalAndSuspension gives one source an interval of its own.
func TestASourceKeepsItsOwnIntervalAndSuspension(t *testing.T) {
	g := NewWithT(t)
	bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{Interval: &hour, ProviderSource: &providerv1.ProviderSource{
		OCI: &sourcev1.OCIRepositorySpec{URL: "oci://x.example.org/y", Interval: minute, Suspend: true},
	}}))
	g.Expect(err).NotTo(HaveOccurred())
	set, _ := bundle.ProviderSet.Source.(*sourcev1.OCIRepository)
	g.Expect(set.Spec.Interval).To(Equal(minute))
	g.Expect(set.Spec.Suspend).To(BeTrue())
	chart, _ := bundle.Operator.Source.(*sourcev1.HelmRepository)
	g.Expect(chart.Spec.Interval).To(Equal(hour))
	g.Expect(chart.Spec.Suspend).To(BeFalse())
}

// TestProvidersNeverGoThroughTheChart: the chart's hooks would delete and re-create their namespaces at each upgrade.
func TestProvidersNeverGoThroughTheChart(t *testing.T) {
	g := NewWithT(t)
	bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{Providers: []providerv1.Provider{
		{Type: providerv1.InfrastructureType, Name: "aws", Version: "v1.0.0"},
	}}))
	g.Expect(err).NotTo(HaveOccurred())
	release, _ := bundle.Operator.Installer.(*helmv2.HelmRelease)
	g.Expect(release.Spec.Values.Raw).To(MatchJSON(`{"watchConfigSecret": true, "watchConfigMap": true}`))
}

// TestAddingAProviderChangesNothingElse compares all objects before and after.
func TestAddingAProviderChangesNothingElse(t *testing.T) {
	g := NewWithT(t)
	spec := providerv1.ProviderConfigSpec{Providers: []providerv1.Provider{
		{Type: providerv1.InfrastructureType, Name: "aws", Version: "v1.0.0"},
	}}
	before, err := gitops.Build(input(spec))
	g.Expect(err).NotTo(HaveOccurred())
	spec.Providers = append(spec.Providers, providerv1.Provider{Type: providerv1.IPAMType, Name: "in-cluster", Version: "v1.0.0"})
	after, err := gitops.Build(input(spec))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after.Objects()).To(HaveLen(len(before.Objects()) + 1))
	g.Expect(after.Objects()[:len(before.Objects())]).To(Equal(before.Objects()))
}

func TestBuildLeavesItsInputAlone(t *testing.T) {
	g := NewWithT(t)
	in := input(providerv1.ProviderConfigSpec{
		Operator:  providerv1.OperatorSpec{Chart: &providerv1.Chart{Helm: &sourcev1.HelmRepositorySpec{URL: "https://x.example.org"}}},
		Providers: []providerv1.Provider{{Type: providerv1.InfrastructureType, Name: "aws", Version: "v1.0.0"}},
		Profiles:  []providerv1.Profile{{Name: "small"}}, Suspend: true,
	})
	spec, defaults := *in.Spec.DeepCopy(), in.Defaults
	_, err := gitops.Render(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(in.Spec).To(Equal(spec))
	g.Expect(in.Defaults).To(Equal(defaults))
	g.Expect(in.Defaults).To(Equal(gitops.DefaultDefaults("v0.1.0")), "nothing is shared with what was built")
}

func TestPartsInTheOrderOfInstallation(t *testing.T) {
	g := NewWithT(t)
	bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{
		Operator:     providerv1.OperatorSpec{Management: providerv1.External},
		Providers:    []providerv1.Provider{{Type: providerv1.AddonType, Name: "helm", Version: "v1.0.0"}},
		ProviderSets: []providerv1.ProviderSet{{Name: "metal"}},
	}))
	g.Expect(err).NotTo(HaveOccurred())
	var components []string
	for _, part := range bundle.Parts() {
		components = append(components, part.Component)
		g.Expect(part.External).To(Equal(part.Component == gitops.CertManager || part.Component == gitops.Operator), part.Component)
		g.Expect(part.External).To(Equal(len(part.Objects) == 0), part.Component)
		for _, obj := range part.Objects {
			g.Expect(obj.GetLabels()).To(And(HaveKeyWithValue(providerv1.ManagedByLabel, "capi"),
				HaveKeyWithValue(providerv1.ProviderConfigLabel, "config"), HaveKeyWithValue(providerv1.ComponentLabel, part.Component)))
		}
	}
	g.Expect(components).To(Equal([]string{"cert-manager", "operator", "provider-set", "core", "addon-helm", "set-metal"}))
}

func TestValuesThatAreNoObjectAreRefused(t *testing.T) {
	g := NewWithT(t)
	_, err := gitops.Build(input(providerv1.ProviderConfigSpec{Operator: providerv1.OperatorSpec{
		Values: &apiextensionsv1.JSON{Raw: []byte(`{"a": `)},
	}}))
	g.Expect(err).To(MatchError(ContainSubstring("values of operator")))
}
