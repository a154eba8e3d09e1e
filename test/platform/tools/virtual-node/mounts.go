// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mounts maps the mount paths of a container to real folders, longest path first.
type mounts []mount

type mount struct{ path, dir string }

// containerMounts is where the mounts of a container really are, given the folder of the pod's volumes.
func containerMounts(c *corev1.Container, volumes string) mounts {
	var all mounts
	for _, m := range c.VolumeMounts {
		all = append(all, mount{
			path: filepath.Clean(m.MountPath),
			dir:  filepath.Join(volumes, m.Name, m.SubPath),
		})
	}
	slices.SortStableFunc(all, func(a, b mount) int { return len(b.path) - len(a.path) })
	return all
}

// dir is the real place of a path in the container; what no mount covers lies in the container's own root folder.
func (m mounts) dir(root, path string) string {
	path = filepath.Clean(path)
	for _, e := range m {
		if rest, ok := strings.CutPrefix(path, e.path); ok && (rest == "" || rest[0] == '/') {
			return filepath.Join(e.dir, rest)
		}
	}
	return filepath.Join(root, path)
}

// rewrite replaces every mount path in a text by the real folder. A path counts only where it stands alone: "/certs"
// is found in "--dir=/certs/tls.crt" but not in "/certs2" or "my/certs".
func (m mounts) rewrite(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		e, ok := m.at(text, i)
		if !ok {
			out.WriteByte(text[i])
			i++
			continue
		}
		out.WriteString(e.dir)
		i += len(e.path)
	}
	return out.String()
}

// at finds the mount whose path begins at an index of a text.
func (m mounts) at(text string, i int) (mount, bool) {
	if i > 0 && isPathByte(text[i-1]) {
		return mount{}, false
	}
	for _, e := range m {
		rest, ok := strings.CutPrefix(text[i:], e.path)
		if ok && e.path != "/" && (rest == "" || rest[0] == '/' || !isPathByte(rest[0])) {
			return e, true
		}
	}
	return mount{}, false
}

// isPathByte says whether a byte can continue the name of a file.
func isPathByte(b byte) bool {
	return b == '/' || b == '.' || b == '-' || b == '_' ||
		'0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
