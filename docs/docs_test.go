// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// root is the folder of the repository, seen from this one.
const root = ".."

func TestOperationsNamesEveryConditionAndReason(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("operations.md")
	g.Expect(err).NotTo(HaveOccurred())
	constants := conditionsAndReasons(t, filepath.Join(root, "api", "v1alpha1", "conditions.go"))
	g.Expect(constants).NotTo(BeEmpty())
	for name, value := range constants {
		if !strings.Contains(string(page), "`"+value+"`") {
			t.Errorf("operations.md does not name `%s` (%s): say what it means and what to do", value, name)
		}
	}
}

// conditionsAndReasons returns the values of all exported string constants of a file, by their names.
func conditionsAndReasons(t *testing.T, path string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	g.Expect(err).NotTo(HaveOccurred())
	constants := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range spec.Values {
			if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING && spec.Names[i].IsExported() {
				constants[spec.Names[i].Name], err = strconv.Unquote(literal.Value)
				g.Expect(err).NotTo(HaveOccurred())
			}
		}
		return false
	})
	return constants
}

func TestOperationsNamesEveryMetric(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("operations.md")
	g.Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob(filepath.Join(root, "controllers", "*", "metrics.go"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		source, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		for _, match := range metricName.FindAllStringSubmatch(string(source), -1) {
			if !strings.Contains(string(page), "`"+match[1]+"`") {
				t.Errorf("operations.md does not name the metric %s of %s", match[1], file)
			}
		}
	}
}

// metricName finds the names of this provider's metrics in Go code.
var metricName = regexp.MustCompile(`"(cluster_provider_capi_[a-z_]+)"`)

func TestSpecNamesEveryFieldOfAProviderConfig(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("spec/v1alpha1/providerconfig.md")
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range []string{"providerconfig_types.go", "provider_types.go", "profile_types.go", "source_types.go"} {
		source, err := os.ReadFile(filepath.Join(root, "api", "v1alpha1", file))
		g.Expect(err).NotTo(HaveOccurred())
		for _, match := range jsonName.FindAllStringSubmatch(string(source), -1) {
			if field := match[1]; !kubernetes[field] && !strings.Contains(string(page), field) {
				t.Errorf("spec/v1alpha1/providerconfig.md does not name the field %s of %s", field, file)
			}
		}
	}
}

// kubernetes are the fields that all kinds have.
var kubernetes = map[string]bool{"metadata": true, "spec": true, "status": true, "items": true}

// jsonName finds the names of fields in Go structs.
var jsonName = regexp.MustCompile("`json:\"([A-Za-z]+)")

func TestLinksLeadSomewhere(t *testing.T) {
	pages := markdownFiles(t)
	NewWithT(t).Expect(pages).To(ContainElement(filepath.Join(root, "README.md")))
	for _, page := range pages {
		text := readWithoutCode(t, page)
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, err := url.Parse(match[1])
			if err != nil {
				t.Errorf("%s: link %q: %v", page, match[1], err)
				continue
			}
			if target.Scheme != "" {
				continue
			}
			path := page
			if target.Path != "" {
				path = filepath.Join(filepath.Dir(page), filepath.FromSlash(target.Path))
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: link %q leads nowhere", page, match[1])
			} else if target.Fragment != "" && !hasHeading(t, path, target.Fragment) {
				t.Errorf("%s: link %q: there is no such heading", page, match[1])
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	// dropped is what GitHub leaves out of the anchor of a heading.
	dropped = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// markdownFiles returns all pages of the repository.
func markdownFiles(t *testing.T) []string {
	t.Helper()
	var pages []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin") {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return nil
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return pages
}

// readWithoutCode returns a page without its examples, which may have brackets of their own.
func readWithoutCode(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return code.ReplaceAllString(string(raw), "")
}

// hasHeading says whether a page has a heading with that anchor.
func hasHeading(t *testing.T, path, anchor string) bool {
	t.Helper()
	raw, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, match := range heading.FindAllStringSubmatch(string(raw), -1) {
		slug := dropped.ReplaceAllString(strings.ToLower(match[1]), "")
		if strings.ReplaceAll(slug, " ", "-") == anchor {
			return true
		}
	}
	return false
}
