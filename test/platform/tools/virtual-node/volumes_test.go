// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestVolumes(t *testing.T) {
	t.Parallel()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"tls.crt": []byte("one"), "tls.key": []byte("k")},
	}
	c := contentOf(t, secret)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "empty", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
		{Name: "optional", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: "gone", Optional: ptr.To(true),
		}}},
		{Name: "projected", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "vault"}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
				}}},
			},
		}}},
	}
	token := func(audience string, seconds int64) (string, error) {
		return fmt.Sprintf("for %s, %d s", audience, seconds), nil
	}
	dir := t.TempDir()
	read := func(path string) string {
		raw, err := os.ReadFile(filepath.Join(dir, path))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return string(raw)
	}
	g := NewWithT(t)
	g.Expect(c.syncVolumes(pod, dir, token)).To(Succeed())
	g.Expect(read("secret/tls.crt")).To(Equal("one"))
	g.Expect(read("projected/token")).To(Equal("for vault, 3600 s"))
	g.Expect(read("projected/namespace")).To(Equal("ns"))
	g.Expect(filepath.Join(dir, "empty")).To(BeADirectory())
	g.Expect(filepath.Join(dir, "optional")).To(BeADirectory())

	secret.Data["tls.crt"] = []byte("two")
	g.Expect(c.syncVolumes(pod, dir, token)).To(Succeed())
	g.Expect(read("secret/tls.crt")).To(Equal("two"))

	pod.Spec.Volumes = []corev1.Volume{
		{Name: "needed", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "gone"}}},
	}
	g.Expect(c.syncVolumes(pod, dir, token)).To(MatchError(And(ContainSubstring("volume needed"), ContainSubstring(`"gone" not found`))))
}
