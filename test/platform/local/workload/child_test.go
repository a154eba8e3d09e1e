// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestLastLine(t *testing.T) {
	for name, c := range map[string]struct{ log, want string }{
		"is empty when nothing was written": {"", ""},
		"ignores the end of the line":       {"first\nlast\n", "last"},
		"is cut":                            {"first\n" + strings.Repeat("x", 5000), strings.Repeat("x", maxLine)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "log")
			g.Expect(os.WriteFile(path, []byte(c.log), 0o600)).To(Succeed())
			g.Expect(lastLine(path)).To(Equal(c.want))
		})
	}
	NewWithT(t).Expect(lastLine("/does/not/exist")).To(BeEmpty())
}

func TestSecondHostWaitsForTheFirst(t *testing.T) {
	g := NewWithT(t)
	binaries, data := t.TempDir(), t.TempDir()
	_, err := NewHost(binaries, data)
	g.Expect(err).To(MatchError(os.ErrNotExist))
	for _, name := range []string{"etcd", "kube-apiserver"} {
		g.Expect(os.WriteFile(filepath.Join(binaries, name), nil, 0o700)).To(Succeed())
	}
	first, err := NewHost(binaries, data)
	g.Expect(err).NotTo(HaveOccurred())
	second, err := NewHost(binaries, data)
	g.Expect(err).NotTo(HaveOccurred())
	key := types.NamespacedName{Namespace: "a", Name: "b"}
	g.Expect(first.Remove(key, "1")).To(Succeed())
	g.Expect(second.Remove(key, "1")).To(MatchError(ErrTaken))
	g.Expect(first.lock.Close()).To(Succeed())
	g.Expect(second.Remove(key, "1")).To(Succeed())
}
