// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// contentOf has the given Secrets and ConfigMaps.
func contentOf(t *testing.T, objects ...runtime.Object) content {
	t.Helper()
	index := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	secrets, configMaps := index(), index()
	for _, o := range objects {
		to := secrets
		if _, ok := o.(*corev1.ConfigMap); ok {
			to = configMaps
		}
		NewWithT(t).Expect(to.Add(o)).To(Succeed())
	}
	return content{secrets: corev1listers.NewSecretLister(secrets), configMaps: corev1listers.NewConfigMapLister(configMaps)}
}

func secretKey(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: ptr.To(optional),
	}}
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	c := contentOf(t,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"password": []byte("p")}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Data: map[string]string{"COLOR": "red"}},
	)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", Labels: map[string]string{"app": "a"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "account"},
		Status:     corev1.PodStatus{PodIP: "10.244.0.2"},
	}
	g := NewWithT(t)
	env, err := c.environment(pod, &corev1.Container{
		EnvFrom: []corev1.EnvFromSource{{Prefix: "C_", ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "c"},
		}}},
		Env: []corev1.EnvVar{
			{Name: "PLAIN", Value: "v"},
			{Name: "COMBINED", Value: "$(PLAIN)-$(C_COLOR)-$$(PLAIN)"},
			{Name: "PASSWORD", ValueFrom: secretKey("s", "password", false)},
			{Name: "NONE", ValueFrom: secretKey("s", "other", true)},
			{Name: "NAMESPACE", ValueFrom: field("metadata.namespace")},
			{Name: "APP", ValueFrom: field("metadata.labels['app']")},
			{Name: "ACCOUNT", ValueFrom: field("spec.serviceAccountName")},
			{Name: "IP", ValueFrom: field("status.podIP")},
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(env).To(Equal(map[string]string{
		"C_COLOR": "red", "PLAIN": "v", "COMBINED": "v-red-$(PLAIN)", "PASSWORD": "p",
		"NAMESPACE": "ns", "APP": "a", "ACCOUNT": "account", "IP": "10.244.0.2",
	}))

	for _, missing := range []*corev1.EnvVarSource{secretKey("gone", "k", false), secretKey("s", "gone", false)} {
		_, err := c.environment(pod, &corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: missing}}})
		g.Expect(err).To(MatchError(And(ContainSubstring("environment variable X"), ContainSubstring("gone"))))
	}
}
