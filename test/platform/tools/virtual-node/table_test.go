// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestLoadImage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "images.yaml")
	write := func(text string) { NewWithT(t).Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed()) }
	write("images:\n  app:v1: {path: /bin/app, args: [--last]}\n")

	g := NewWithT(t)
	entry, ok, err := loadImage(path, "app:v1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ok).To(BeTrue())
	g.Expect(entry).To(Equal(image{Path: "/bin/app", Args: []string{"--last"}}))

	_, ok, err = loadImage(path, "app:v2")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ok).To(BeFalse())

	write("images:\n  app:v1: {pth: /bin/app}\n")
	_, _, err = loadImage(path, "app:v1")
	g.Expect(err).To(MatchError(ContainSubstring("pth")))
}

func TestArguments(t *testing.T) {
	t.Parallel()
	entry := image{
		DefaultArgs: []string{"serve"},
		Args:        []string{"--port={{port 9443}}", `--dir={{dir "/certs"}}`},
		CommandArgs: map[string][]string{"run": {"--kubeconfig={{kubeconfig}}"}},
	}
	fill := placeholders{
		port:       func(port int32) (int, error) { return int(port) + 10000, nil },
		dir:        func(path string) string { return "/real" + path },
		kubeconfig: "/pod/kubeconfig",
	}
	rewrite := func(text string) string { return strings.ReplaceAll(text, "/etc/app", "/pod/volumes/etc") }
	for name, test := range map[string]struct{ command, args, want []string }{
		"the first word of a command is left out, as the table names the binary": {
			command: []string{"/manager", "--config=/etc/app/c"}, args: []string{"--v=2"},
			want: []string{"--config=/pod/volumes/etc/c", "--v=2", "--port=19443", "--dir=/real/certs"},
		},
		"the image's own arguments stand in when the container has none": {
			want: []string{"serve", "--port=19443", "--dir=/real/certs"},
		},
		"a subcommand can have flags of its own": {
			args: []string{"run"}, want: []string{"run", "--port=19443", "--dir=/real/certs", "--kubeconfig=/pod/kubeconfig"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			got, err := entry.arguments(test.command, test.args, fill, rewrite)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
	t.Run("a placeholder that does not exist is an error", func(t *testing.T) {
		t.Parallel()
		_, err := fill.expand("{{host}}")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("host")))
	})
}
