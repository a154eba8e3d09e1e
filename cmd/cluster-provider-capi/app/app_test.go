// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"
)

// execute runs the command and returns what it prints.
func execute(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := NewCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

const samples = "../../../fixtures/providerconfigs/"

func TestRenderPrintsTheGoldenFiles(t *testing.T) {
	g := NewWithT(t)
	Version = "v0.1.0"
	t.Cleanup(func() { Version = "dev" })
	files, err := filepath.Glob(samples + "*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		out, err := execute(t, "", "render", "-f", file)
		g.Expect(err).NotTo(HaveOccurred())
		want, err := os.ReadFile(filepath.Join("../../../fixtures/golden", filepath.Base(file)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(Equal(string(want)), file)
	}
}

func TestRenderTakesOtherKindsAndStandardInput(t *testing.T) {
	g := NewWithT(t)
	config, err := os.ReadFile(samples + "minimal.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	other := "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n---\n"
	out, err := execute(t, other+string(config), "render", "-f", "-", "--namespace", "other")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(And(ContainSubstring("namespace: other"), Not(ContainSubstring("kind: Secret"))))
}

func TestRenderNamesWhatIsWrong(t *testing.T) {
	const ref = "  providerRef: {name: capi}\n"
	header := "apiVersion: capi.cluster.open-control-plane.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: x}\nspec:\n" + ref
	for name, c := range map[string]struct{ text, message string }{
		"no ProviderConfig": {"kind: Secret\n", "there is no ProviderConfig"},
		"unknown field":     {header + "  provders: []\n", `unknown field "spec.provders"`},
		"broken YAML":       {"a: [\n", "document 1"},
		"no providerRef":    {strings.ReplaceAll(header, ref, "  suspend: true\n"), "spec.providerRef.name must be set"},
		"unknown type":      {header + "  providers: [{type: weird, name: x, version: v1.0.0}]\n", "ProviderConfig x: spec.providers[0].type"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, c.text, "render", "-f", "-")
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}
	_, err := execute(t, "", "render", "-f", "nowhere.yaml")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("nowhere.yaml")))
	_, err = execute(t, "", "render")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`"filename" not set`)))
}

func TestFlagsThatAreMissingAreNamed(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("POD_NAMESPACE", "")
	for _, command := range []string{"init", "run"} {
		_, err := execute(t, "", command)
		g.Expect(err).To(MatchError(ContainSubstring("--provider-name is missing")))
		_, err = execute(t, "", command, "--provider-name=capi")
		g.Expect(err).To(MatchError(ContainSubstring("--environment is missing")))
		_, err = execute(t, "", command, "--provider-name=capi", "--environment=e")
		g.Expect(err).To(MatchError(ContainSubstring("POD_NAMESPACE")))
		_, err = execute(t, "", command, "--provider-name=capi", "--environment=e", "--namespace=n", "--defaults=nowhere.yaml")
		g.Expect(err).To(MatchError(ContainSubstring("--defaults: open nowhere.yaml")))
	}
}

func TestDefaultsFileReplacesWhatIsBuiltIn(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "defaults.yaml")
	g.Expect(os.WriteFile(file, []byte("core: {version: v1.13.0}\n"), 0o600)).To(Succeed())
	defaults, err := readDefaults(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(defaults.Core.Version).To(Equal("v1.13.0"))
	g.Expect(defaults.Operator.Chart).NotTo(BeNil())

	g.Expect(os.WriteFile(file, []byte("cores: {}\n"), 0o600)).To(Succeed())
	_, err = readDefaults(file)
	g.Expect(err).To(MatchError(ContainSubstring(`unknown field "cores"`)))
}

func TestLeaseNameIsLegal(t *testing.T) {
	g := NewWithT(t)
	for _, name := range []string{"capi", "Capi.Two", strings.Repeat("a", 63)} {
		g.Expect(validation.IsDNS1123Subdomain(leaseName(name))).To(BeEmpty())
	}
	g.Expect(leaseName("a")).NotTo(Equal(leaseName("b")))
}
