// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// content reads the Secrets and ConfigMaps that pods refer to, from a cache.
type content struct {
	secrets    corev1listers.SecretLister
	configMaps corev1listers.ConfigMapLister
}

// environment resolves the variables of a container as a kubelet does; values keep the paths of the container.
func (c content) environment(pod *corev1.Pod, container *corev1.Container) (map[string]string, error) {
	env := map[string]string{}
	for _, from := range container.EnvFrom {
		values, err := c.envFrom(pod.Namespace, from)
		if err != nil {
			return nil, err
		}
		for key, value := range values {
			env[from.Prefix+key] = value
		}
	}
	for _, e := range container.Env {
		if e.ValueFrom == nil {
			env[e.Name] = expansion.Expand(e.Value, expansion.MappingFuncFor(env))
			continue
		}
		value, ok, err := c.valueFrom(pod, e.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s: %w", e.Name, err)
		}
		if ok {
			env[e.Name] = value
		}
	}
	return env, nil
}

func (c content) envFrom(namespace string, from corev1.EnvFromSource) (map[string]string, error) {
	switch {
	case from.SecretRef != nil:
		secret, err := c.secrets.Secrets(namespace).Get(from.SecretRef.Name)
		if err != nil {
			return nil, ignoreMissing(err, from.SecretRef.Optional)
		}
		return stringData(secret.Data), nil
	case from.ConfigMapRef != nil:
		configMap, err := c.configMaps.ConfigMaps(namespace).Get(from.ConfigMapRef.Name)
		if err != nil {
			return nil, ignoreMissing(err, from.ConfigMapRef.Optional)
		}
		return configMap.Data, nil
	}
	return nil, nil
}

// valueFrom resolves one reference; it is false when an optional source is missing.
func (c content) valueFrom(pod *corev1.Pod, from *corev1.EnvVarSource) (string, bool, error) {
	switch {
	case from.FieldRef != nil:
		value, err := fieldValue(pod, from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		values, err := c.envFrom(pod.Namespace, corev1.EnvFromSource{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref.LocalObjectReference, Optional: ref.Optional},
		})
		if err != nil {
			return "", false, err
		}
		return pick(values, "secret "+ref.Name, ref.Key, ref.Optional)
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		values, err := c.envFrom(pod.Namespace, corev1.EnvFromSource{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref.LocalObjectReference, Optional: ref.Optional},
		})
		if err != nil {
			return "", false, err
		}
		return pick(values, "configmap "+ref.Name, ref.Key, ref.Optional)
	}
	// Resource fields have no meaning for a process without limits.
	return "", false, nil
}

// fieldValue reads a field for the downward API; the lib knows the metadata, the rest is listed in the API docs.
func fieldValue(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return pod.Status.PodIP, nil
	case "status.hostIP", "status.hostIPs":
		return pod.Status.HostIP, nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}

// pick finds the value of a key in an object; it is false when an optional one is missing.
func pick(values map[string]string, object, key string, optional *bool) (string, bool, error) {
	value, ok := values[key]
	if !ok && (optional == nil || !*optional) {
		return "", false, fmt.Errorf("couldn't find key %s in %s", key, object)
	}
	return value, ok, nil
}

func ignoreMissing(err error, optional *bool) error {
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	return err
}

func stringData(data map[string][]byte) map[string]string {
	text := make(map[string]string, len(data))
	for key, value := range data {
		text[key] = string(value)
	}
	return text
}

// environ turns variables into the form that a process wants, in a stable order.
func environ(env map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, name+"="+env[name])
	}
	return all
}
