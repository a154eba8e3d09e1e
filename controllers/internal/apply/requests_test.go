// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/apply"
)

// counting returns a client that counts what it writes.
func counting(t *testing.T, writes *int) client.Client {
	t.Helper()
	inner, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Client.Scheme()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(inner, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			*writes++
			return c.Apply(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			*writes++
			return c.Delete(ctx, obj, opts...)
		},
	})
}

// TestNothingIsSentWhenNothingDiffers counts requests, since an API server keeps the resourceVersion of an object that is
// applied again anyway.
func TestNothingIsSentWhenNothingDiffers(t *testing.T) {
	g := NewWithT(t)
	writes := 0
	applier, namespace := apply.New(counting(t, &writes)), env.Namespace(t)
	desired := func() *corev1.ConfigMap {
		obj := configMap(namespace, map[string]string{"a": "1"})
		obj.Labels = map[string]string{"l": "v"}
		return obj
	}
	for range 3 {
		g.Expect(applier.All(t.Context(), desired())).To(Succeed())
	}
	g.Expect(writes).To(Equal(1))

	// A field of somebody else is no reason to write.
	live := desired()
	g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live)).To(Succeed())
	live.Annotations = map[string]string{"theirs": "x"}
	g.Expect(env.Client.Update(t.Context(), live)).To(Succeed())
	g.Expect(applier.Apply(t.Context(), desired())).To(BeFalse())
	g.Expect(writes).To(Equal(1))

	// A label of ours that is gone is; and so is an object that is another by the same name.
	delete(live.Labels, "l")
	g.Expect(env.Client.Update(t.Context(), live)).To(Succeed())
	g.Expect(applier.Apply(t.Context(), desired())).To(BeTrue())
	g.Expect(writes).To(Equal(2))
	g.Expect(env.Client.Delete(t.Context(), live)).To(Succeed())
	g.Expect(env.Client.Create(t.Context(), desired())).To(Succeed())
	g.Expect(applier.Apply(t.Context(), desired())).To(BeTrue(), "it takes over the fields of the new one")
	g.Expect(writes).To(Equal(3))
}

func TestStatusAndForeignMetadataAreNotApplied(t *testing.T) {
	g := NewWithT(t)
	namespace := env.Namespace(t)
	obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"l": "v"}, Finalizers: []string{"example.org/x"}, ResourceVersion: "1", UID: "wrong",
	}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}}
	g.Expect(apply.New(env.Client).Apply(t.Context(), obj)).To(BeTrue())
	live := &corev1.Namespace{}
	g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), live)).To(Succeed())
	g.Expect(live.Labels).To(HaveKeyWithValue("l", "v"))
	g.Expect(live.Finalizers).To(BeEmpty())
	g.Expect(live.Status.Phase).To(Equal(corev1.NamespaceActive))
}

func TestAllStopsAtTheFirstError(t *testing.T) {
	g := NewWithT(t)
	namespace := env.Namespace(t)
	bad := configMap("no-such-namespace", nil)
	after := configMap(namespace, nil)
	err := apply.New(env.Client).All(t.Context(), bad, after)
	g.Expect(err).To(MatchError(ContainSubstring("apply ConfigMap no-such-namespace/x")))
	g.Expect(apierrors.IsNotFound(errors.Unwrap(err))).To(BeTrue())
	g.Expect(apierrors.IsNotFound(env.Client.Get(t.Context(), client.ObjectKeyFromObject(after), after))).To(BeTrue())
}

// TestPruneSparesWhatLacksALabel prunes among objects with random labels: only those with both labels go.
func TestPruneSparesWhatLacksALabel(t *testing.T) {
	g := NewWithT(t)
	applier, namespace := apply.New(env.Client), env.Namespace(t)
	random := rand.New(rand.NewPCG(1, 2))
	spared := []string{}
	for i := range 60 {
		set := labels.Set{"test": namespace}
		for _, key := range []string{"instance", "config"} {
			if value := []string{"", "ours", "theirs"}[random.IntN(3)]; value != "" {
				set[key] = value
			}
		}
		obj := configMap(namespace, nil)
		obj.Name, obj.Labels = string(rune('a'+i/26))+string(rune('a'+i%26)), set
		g.Expect(env.Client.Create(t.Context(), obj)).To(Succeed())
		if set["instance"] != "ours" || set["config"] != "ours" {
			spared = append(spared, obj.Name)
		}
	}
	g.Expect(len(spared)).To(BeNumerically("<", 60), "some go")
	selector := labels.SelectorFromSet(labels.Set{"test": namespace, "instance": "ours", "config": "ours"})
	_, err := applier.Prune(t.Context(), []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}}, selector, nil)
	g.Expect(err).NotTo(HaveOccurred())
	list := &corev1.ConfigMapList{}
	g.Expect(env.Client.List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{"test"})).To(Succeed())
	left := []string{}
	for _, item := range list.Items {
		left = append(left, item.Name)
	}
	g.Expect(left).To(ConsistOf(spared))
}

func TestDeleteWaitsForFinalizersAndSaysSo(t *testing.T) {
	g := NewWithT(t)
	writes := 0
	applier, namespace := apply.New(counting(t, &writes)), env.Namespace(t)
	obj := configMap(namespace, nil)
	obj.Finalizers, obj.Labels = []string{"example.org/x"}, map[string]string{"held": namespace}
	g.Expect(env.Client.Create(t.Context(), obj)).To(Succeed())
	prune := func() []client.Object {
		left, err := applier.Prune(t.Context(), []client.ObjectList{&corev1.ConfigMapList{}},
			labels.SelectorFromSet(labels.Set{"held": namespace}), nil)
		g.Expect(err).NotTo(HaveOccurred())
		return left
	}
	g.Expect(prune()).To(HaveLen(1))
	g.Expect(prune()).To(HaveLen(1))
	g.Expect(writes).To(Equal(1), "what goes already is not deleted again")

	g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	obj.Finalizers = nil
	g.Expect(env.Client.Update(t.Context(), obj)).To(Succeed())
	g.Expect(prune()).To(BeEmpty())
	g.Expect(applier.Delete(t.Context(), configMap(namespace, nil))).To(Succeed(), "gone is what was wanted")
}
