// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/secret"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/utils/ptr"
)

// files is the content of a volume by relative path.
type files = map[string]volumeutil.FileProjection

// tokenSource returns a ServiceAccount token of the pod that is valid for a while.
type tokenSource func(audience string, seconds int64) (string, error)

// syncVolumes brings the folders of a pod's volumes up to date, with the kubelet's own writer: a change of content is
// an atomic swap of a symlink, which is what programs that reload files watch for.
func (c content) syncVolumes(pod *corev1.Pod, dir string, token tokenSource) error {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if err := c.syncVolume(pod, v, filepath.Join(dir, v.Name), token); err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
	}
	return nil
}

func (c content) syncVolume(pod *corev1.Pod, v *corev1.Volume, dir string, token tokenSource) error {
	if v.HostPath != nil {
		if _, err := os.Lstat(dir); err == nil {
			return nil
		}
		return os.Symlink(v.HostPath.Path, dir)
	}
	if v.EmptyDir != nil {
		return os.MkdirAll(dir, 0o755)
	}
	payload, err := c.volumeFiles(pod, v, token)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	writer, err := volumeutil.NewAtomicWriter(dir, pod.Namespace+"/"+pod.Name)
	if err != nil {
		return err
	}
	return writer.Write(payload, nil)
}

// volumeFiles is what a volume that is made from API objects contains.
func (c content) volumeFiles(pod *corev1.Pod, v *corev1.Volume, token tokenSource) (files, error) {
	switch {
	case v.Secret != nil:
		return c.secretFiles(pod.Namespace, v.Secret.SecretName, v.Secret.Items, v.Secret.DefaultMode, v.Secret.Optional)
	case v.ConfigMap != nil:
		return c.configMapFiles(pod.Namespace, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.DefaultMode, v.ConfigMap.Optional)
	case v.DownwardAPI != nil:
		return downwardFiles(pod, v.DownwardAPI.Items, v.DownwardAPI.DefaultMode)
	case v.Projected != nil:
		all := files{}
		for _, source := range v.Projected.Sources {
			some, err := c.projectedFiles(pod, source, v.Projected.DefaultMode, token)
			if err != nil {
				return nil, err
			}
			maps.Copy(all, some)
		}
		return all, nil
	}
	return nil, fmt.Errorf("a virtual node has no such kind of volume")
}

func (c content) projectedFiles(pod *corev1.Pod, source corev1.VolumeProjection, mode *int32, token tokenSource) (files, error) {
	switch {
	case source.Secret != nil:
		return c.secretFiles(pod.Namespace, source.Secret.Name, source.Secret.Items, mode, source.Secret.Optional)
	case source.ConfigMap != nil:
		return c.configMapFiles(pod.Namespace, source.ConfigMap.Name, source.ConfigMap.Items, mode, source.ConfigMap.Optional)
	case source.DownwardAPI != nil:
		return downwardFiles(pod, source.DownwardAPI.Items, mode)
	case source.ServiceAccountToken != nil:
		ref := source.ServiceAccountToken
		text, err := token(ref.Audience, ptr.Deref(ref.ExpirationSeconds, tokenSeconds))
		return files{ref.Path: {Data: []byte(text), Mode: 0o600}}, err
	}
	return nil, fmt.Errorf("a virtual node has no such source of a projected volume")
}

func (c content) secretFiles(namespace, name string, items []corev1.KeyToPath, mode *int32, optional *bool) (files, error) {
	object, err := c.secrets.Secrets(namespace).Get(name)
	if err != nil {
		return nil, ignoreMissing(err, optional)
	}
	return secret.MakePayload(items, object, modeOrDefault(mode), ptr.Deref(optional, false))
}

func (c content) configMapFiles(namespace, name string, items []corev1.KeyToPath, mode *int32, optional *bool) (files, error) {
	object, err := c.configMaps.ConfigMaps(namespace).Get(name)
	if err != nil {
		return nil, ignoreMissing(err, optional)
	}
	return configmap.MakePayload(items, object, modeOrDefault(mode), ptr.Deref(optional, false))
}

func downwardFiles(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode *int32) (files, error) {
	all := files{}
	for _, item := range items {
		if item.FieldRef == nil {
			continue
		}
		value, err := fieldValue(pod, item.FieldRef.FieldPath)
		if err != nil {
			return nil, err
		}
		all[filepath.Clean(item.Path)] = volumeutil.FileProjection{
			Data: []byte(value),
			Mode: ptr.Deref(item.Mode, *modeOrDefault(mode)),
		}
	}
	return all, nil
}

func modeOrDefault(mode *int32) *int32 {
	if mode == nil {
		return ptr.To(corev1.SecretVolumeSourceDefaultMode)
	}
	return mode
}
