// SPDX-License-Identifier: Apache-2.0

package gitops_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	fluxkustomize "github.com/fluxcd/pkg/kustomize"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// nasty are parts of strings that YAML, kustomize or Flux's substitution would change if they were not escaped.
var nasty = []string{
	"${HOME}", "${PROVIDER_NAME}", "$", "$$", "${", "$${X}", "${X:=default}", "}", "'", `"`, `\`, "\n", "  ", "#", ":", "- ", "%", "{{", "|",
	"é",
	"a", "0", "true", "~", "$(X)", "\t",
}

func nastyString(r *rand.Rand) string {
	var out strings.Builder
	for range 1 + r.IntN(6) {
		out.WriteString(nasty[r.IntN(len(nasty))])
	}
	// The one thing that is refused, see TestBuildRefusesWhatKustomizeCannotCarry.
	return strings.TrimLeft(out.String(), "\t") + "."
}

// randomOptions fills every field of the options of a provider.
func randomOptions(seed uint64) providerv1.ProviderOptions {
	r := rand.New(rand.NewPCG(seed, 1))
	filler := randfill.NewWithSeed(int64(seed)).NilChance(.2).NumElements(1, 3).MaxDepth(14).Funcs( //nolint:gosec // a small number
		func(s *string, _ randfill.Continue) { *s = nastyString(r) },
		func(q *resource.Quantity, _ randfill.Continue) {
			*q = *resource.NewQuantity(r.Int64N(1000), resource.DecimalSI)
		},
		func(i *intstr.IntOrString, _ randfill.Continue) { *i = intstr.FromInt32(r.Int32N(100)) },
		func(d *metav1.Duration, _ randfill.Continue) { d.Duration = 7 * 1e9 },
		func(t *metav1.Time, _ randfill.Continue) { *t = metav1.Unix(r.Int64N(1e9), 0) },
		func(i *int, _ randfill.Continue) { *i = r.IntN(1000) },
		func(i *int64, _ randfill.Continue) { *i = r.Int64N(1000) },
		func(f *corev1.ResourceList, _ randfill.Continue) {
			*f = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		},
	)
	options := providerv1.ProviderOptions{}
	filler.Fill(&options)
	return options
}

// build does with a Kustomization of ours what kustomize-controller does, and returns the provider object.
func build(t *testing.T, kustomization client.Object, kind string) map[string]any {
	t.Helper()
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(os.CopyFS(root, os.DirFS("sets"))).To(Succeed())
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(kustomization)
	g.Expect(err).NotTo(HaveOccurred())
	object := unstructured.Unstructured{Object: content}
	path, _, err := unstructured.NestedString(content, "spec", "path")
	g.Expect(err).NotTo(HaveOccurred())
	dir := filepath.Join(root, path)
	_, err = fluxkustomize.NewGenerator(root, object).WriteFile(dir)
	g.Expect(err).NotTo(HaveOccurred())
	resources, err := fluxkustomize.SecureBuild(root, dir, false)
	g.Expect(err).NotTo(HaveOccurred())
	for _, resource := range resources.Resources() {
		if resource.GetKind() != kind {
			continue
		}
		resource, err = fluxkustomize.SubstituteVariables(t.Context(), nil, object, resource)
		g.Expect(err).NotTo(HaveOccurred())
		raw, err := resource.MarshalJSON()
		g.Expect(err).NotTo(HaveOccurred())
		out := map[string]any{}
		g.Expect(json.Unmarshal(raw, &out)).To(Succeed())
		return out
	}
	t.Fatalf("there is no %s in what was built", kind)
	return nil
}

// asJSON returns a value as it is on the wire.
func asJSON(t *testing.T, value any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(value)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	out := map[string]any{}
	NewWithT(t).Expect(json.Unmarshal(raw, &out)).To(Succeed())
	return out
}

// intended returns the ProviderSpec that a provider of a ProviderConfig asks for.
func intended(p providerv1.Provider) operatorv1.ProviderSpec {
	spec := operatorv1.ProviderSpec{
		Version: p.Version, Manager: p.Manager, Deployment: p.Deployment, FetchConfig: p.Fetch,
		AdditionalManifestsRef: p.AdditionalManifests, AdditionalDeployments: p.AdditionalDeployments, Patches: p.Patches,
	}
	if p.FeatureGates != nil {
		if spec.Manager = p.Manager.DeepCopy(); spec.Manager == nil {
			spec.Manager = &operatorv1.ManagerSpec{}
		}
		spec.Manager.FeatureGates = p.FeatureGates
	}
	if key := gitops.ConfigSecretKey(p); key.Name != "" {
		spec.ConfigSecret = &operatorv1.SecretReference{Name: key.Name, Namespace: key.Namespace}
	}
	return spec
}

// TestEveryOptionArrivesUnchanged sends random options through Flux's real build and substitution.
func TestEveryOptionArrivesUnchanged(t *testing.T) {
	for seed := range uint64(30) {
		g := NewWithT(t)
		provider := providerv1.Provider{
			Type: providerv1.InfrastructureType, Name: "metal", Version: "v1.2.3", Namespace: "metal-system",
			ProviderOptions: randomOptions(seed),
		}
		in := input(providerv1.ProviderConfigSpec{Providers: []providerv1.Provider{provider}})
		bundle, err := gitops.Build(in)
		g.Expect(err).NotTo(HaveOccurred(), "seed %d", seed)
		got := build(t, bundle.Providers[0].Installer, "InfrastructureProvider")
		g.Expect(differences("spec", asJSON(t, got["spec"]), asJSON(t, intended(provider)))).To(BeEmpty(), "seed %d", seed)
		metadata, _ := got["metadata"].(map[string]any)
		g.Expect(metadata).To(And(HaveKeyWithValue("name", "metal"), HaveKeyWithValue("namespace", "metal-system")))
	}
}

// TestABigPatchArrivesUnchanged sends a patch that is longer than any that people have.
func TestABigPatchArrivesUnchanged(t *testing.T) {
	g := NewWithT(t)
	patch := strings.Repeat("a line with ${VARIABLE} and 'quotes'\n", 60*1024/38)
	provider := providerv1.Provider{
		Type: providerv1.InfrastructureType, Name: "metal", Version: "v1.2.3",
		ProviderOptions: providerv1.ProviderOptions{Patches: []*operatorv1.Patch{{Patch: patch}}},
	}
	bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{Providers: []providerv1.Provider{provider}}))
	g.Expect(err).NotTo(HaveOccurred())
	got := asJSON(t, build(t, bundle.Providers[0].Installer, "InfrastructureProvider")["spec"])
	want := asJSON(t, intended(provider))
	g.Expect(differences("spec", got, want)).To(BeEmpty())
}

// differences returns where two values differ, as texts that are short enough to read.
func differences(path string, got, want any) []string {
	wantMap, isMap := want.(map[string]any)
	gotMap, _ := got.(map[string]any)
	if isMap && len(gotMap) == len(wantMap) {
		var out []string
		for key, value := range wantMap {
			out = append(out, differences(path+"."+key, gotMap[key], value)...)
		}
		return out
	}
	wantList, isList := want.([]any)
	gotList, _ := got.([]any)
	if isList && len(gotList) == len(wantList) {
		var out []string
		for i, value := range wantList {
			out = append(out, differences(fmt.Sprintf("%s[%d]", path, i), gotList[i], value)...)
		}
		return out
	}
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %.200q instead of %.200q", path, got, want)}
}

// TestEveryTypeHasItsBase builds a provider of each type.
func TestEveryTypeHasItsBase(t *testing.T) {
	g := NewWithT(t)
	in := input(providerv1.ProviderConfigSpec{Providers: []providerv1.Provider{
		{Type: providerv1.InfrastructureType, Name: "a", Version: "v1.0.0"},
		{Type: providerv1.BootstrapType, Name: "b", Version: "v1.0.0"},
		{Type: providerv1.ControlPlaneType, Name: "c", Version: "v1.0.0"},
		{Type: providerv1.AddonType, Name: "d", Version: "v1.0.0"},
		{Type: providerv1.IPAMType, Name: "e", Version: "v1.0.0"},
		{Type: providerv1.RuntimeExtensionType, Name: "f", Version: "v1.0.0"},
	}})
	bundle, err := gitops.Build(in)
	g.Expect(err).NotTo(HaveOccurred())
	for kind, part := range map[string]gitops.Part{
		"CoreProvider": bundle.Core, "InfrastructureProvider": bundle.Providers[0],
		"BootstrapProvider": bundle.Providers[1], "ControlPlaneProvider": bundle.Providers[2],
		"AddonProvider": bundle.Providers[3], "IPAMProvider": bundle.Providers[4],
		"RuntimeExtensionProvider": bundle.Providers[5],
	} {
		got := build(t, part.Installer, kind)
		spec, _ := got["spec"].(map[string]any)
		g.Expect(spec["version"]).To(Equal(part.Version))
	}
}

// TestNamesThatYAMLTakesForSomethingElse sends names that are no texts in YAML through Flux's substitution.
func TestNamesThatYAMLTakesForSomethingElse(t *testing.T) {
	for _, name := range []string{"123", "1e3", "0x1f", "true", "null", "yes", "on", "n", "a"} {
		g := NewWithT(t)
		bundle, err := gitops.Build(input(providerv1.ProviderConfigSpec{Providers: []providerv1.Provider{
			{Type: providerv1.InfrastructureType, Name: name, Namespace: name, Version: "v1.0.0"},
		}}))
		g.Expect(err).NotTo(HaveOccurred())
		metadata, _ := build(t, bundle.Providers[0].Installer, "InfrastructureProvider")["metadata"].(map[string]any)
		g.Expect(metadata).To(And(HaveKeyWithValue("name", name), HaveKeyWithValue("namespace", name)))
	}
}
