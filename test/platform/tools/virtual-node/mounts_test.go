// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestMounts(t *testing.T) {
	t.Parallel()
	all := containerMounts(&corev1.Container{VolumeMounts: []corev1.VolumeMount{
		{Name: "etc", MountPath: "/etc/app/"},
		{Name: "certs", MountPath: "/etc/app/certs", SubPath: "server"},
	}}, "/pod/volumes")

	t.Run("rewrites mount paths where they stand alone", func(t *testing.T) {
		t.Parallel()
		for text, want := range map[string]string{
			"/etc/app":                     "/pod/volumes/etc",
			"--config=/etc/app/c.yaml":     "--config=/pod/volumes/etc/c.yaml",
			"--dir=/etc/app/certs/tls.crt": "--dir=/pod/volumes/certs/server/tls.crt",
			"/etc/app:/etc/app/certs":      "/pod/volumes/etc:/pod/volumes/certs/server",
			"/etc/apple":                   "/etc/apple",
			"/my/etc/app":                  "/my/etc/app",
			"no path at all":               "no path at all",
			"":                             "",
		} {
			NewWithT(t).Expect(all.rewrite(text)).To(Equal(want), text)
		}
	})
	t.Run("finds the folder behind a path, in a mount or in the container's own root", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		g.Expect(all.dir("/root", "/etc/app/certs/ca")).To(Equal("/pod/volumes/certs/server/ca"))
		g.Expect(all.dir("/root", "/etc/app")).To(Equal("/pod/volumes/etc"))
		g.Expect(all.dir("/root", "/etc/apple")).To(Equal("/root/etc/apple"))
	})
}
