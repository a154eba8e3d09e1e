// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/apply"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Run(m, &env)) }

func configMap(namespace string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}, Data: data}
}

func TestApplyWritesOnlyWhatDiffers(t *testing.T) {
	g := NewWithT(t)
	applier, namespace := apply.New(env.Client), env.Namespace(t)
	live := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: "x"}

	g.Expect(applier.Apply(t.Context(), configMap(namespace, map[string]string{"a": "1", "b": "2"}))).To(BeTrue())
	g.Expect(env.Client.Get(t.Context(), key, live)).To(Succeed())
	version := live.ResourceVersion
	g.Expect(applier.Apply(t.Context(), configMap(namespace, map[string]string{"a": "1", "b": "2"}))).To(BeFalse())

	// A value that is no longer wanted goes; what others have set stays.
	live.Data["theirs"] = "3"
	g.Expect(env.Client.Update(t.Context(), live)).To(Succeed())
	g.Expect(applier.Apply(t.Context(), configMap(namespace, map[string]string{"a": "1"}))).To(BeTrue())
	g.Expect(env.Client.Get(t.Context(), key, live)).To(Succeed())
	g.Expect(live.Data).To(Equal(map[string]string{"a": "1", "theirs": "3"}))
	g.Expect(live.ResourceVersion).NotTo(Equal(version))

	// Drift is corrected.
	live.Data["a"] = "changed"
	g.Expect(env.Client.Update(t.Context(), live)).To(Succeed())
	g.Expect(applier.Apply(t.Context(), configMap(namespace, map[string]string{"a": "1"}))).To(BeTrue())

	// What was deleted comes back, also when nothing is remembered.
	g.Expect(env.Client.Delete(t.Context(), live)).To(Succeed())
	g.Expect(applier.Apply(t.Context(), configMap(namespace, map[string]string{"a": "1"}))).To(BeTrue())
	g.Expect(apply.New(env.Client).Apply(t.Context(), configMap(namespace, map[string]string{"a": "1"}))).To(BeFalse())
}

func TestPruneTouchesOnlyWhatIsSelected(t *testing.T) {
	g := NewWithT(t)
	applier, namespace := apply.New(env.Client), env.Namespace(t)
	for name, owner := range map[string]string{"ours": namespace, "kept": namespace, "theirs": "other"} {
		g.Expect(env.Client.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"owner": owner}},
		})).To(Succeed())
	}
	kinds := []client.ObjectList{&corev1.ConfigMapList{}}
	selector := labels.SelectorFromSet(labels.Set{"owner": namespace})
	left, err := applier.Prune(t.Context(), kinds, selector, func(obj client.Object) bool { return obj.GetName() == "kept" })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(HaveLen(1))
	list := &corev1.ConfigMapList{}
	g.Expect(env.Client.List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{"owner"})).To(Succeed())
	names := []string{}
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	g.Expect(names).To(ConsistOf("kept", "theirs"))

	_, err = applier.Prune(t.Context(), kinds, labels.Everything(), nil)
	g.Expect(err).To(MatchError(ContainSubstring("without a selector")))
}

func TestDeleteSparesAnObjectThatIsNewByTheSameName(t *testing.T) {
	g := NewWithT(t)
	applier, namespace := apply.New(env.Client), env.Namespace(t)
	old := configMap(namespace, nil)
	g.Expect(env.Client.Create(t.Context(), old)).To(Succeed())
	g.Expect(env.Client.Delete(t.Context(), old)).To(Succeed())
	g.Expect(env.Client.Create(t.Context(), configMap(namespace, nil))).To(Succeed())
	g.Expect(applier.Delete(t.Context(), old)).NotTo(Succeed())
	g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(old), &corev1.ConfigMap{})).To(Succeed())
}
