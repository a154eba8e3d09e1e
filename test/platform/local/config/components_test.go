// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"flag"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var update = flag.Bool("update", false, "write components.yaml")

func TestComponentsAreUpToDate(t *testing.T) {
	g := NewWithT(t)
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), ".")
	g.Expect(err).NotTo(HaveOccurred())
	want, err := objects.AsYaml()
	g.Expect(err).NotTo(HaveOccurred())
	if *update {
		g.Expect(os.WriteFile("components.yaml", want, 0o644)).To(Succeed())
	}
	got, err := os.ReadFile("components.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).To(Equal(string(want)), "run the test with -update")
}
