// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRenderedObjectsAreTaken checks that what is rendered can be committed as it is: an API server with the CRDs of Flux
// and OpenControlPlane takes every object, and knows each of its fields.
func TestRenderedObjectsAreTaken(t *testing.T) {
	g := NewWithT(t)
	g.Expect(env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openmcp-system"}})).To(Succeed())
	files, err := filepath.Glob("../../../fixtures/golden/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	strict := client.WithFieldValidation(env.Client, metav1.FieldValidationStrict)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)
			for _, obj := range documents(t, file) {
				g.Expect(strict.Create(t.Context(), obj, client.DryRunAll)).To(Succeed(), "%s %s", obj.GetKind(), obj.GetName())
			}
		})
	}
}

// documents returns the objects in a file.
func documents(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	content, err := os.Open(file)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(content.Close()).To(Succeed()) })
	var objs []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(content, 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return objs
		} else if err != nil {
			t.Fatalf("read %s: %v", file, err)
		}
		objs = append(objs, obj)
	}
}
