// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/lifecycle"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Run(m, &env)) }

func TestTakeOperation(t *testing.T) {
	for value, want := range map[string]lifecycle.Operation{
		"":                                       lifecycle.None,
		"dance":                                  lifecycle.None,
		constants.OperationAnnotationValueIgnore: lifecycle.Ignore,
		constants.OperationAnnotationValueReconcile: lifecycle.Reconcile,
	} {
		g := NewWithT(t)
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: env.Namespace(t), Name: "x", Annotations: map[string]string{constants.OperationAnnotation: value, "other": "stays"},
		}}
		g.Expect(env.Client.Create(t.Context(), obj)).To(Succeed())
		g.Expect(lifecycle.TakeOperation(t.Context(), env.Client, obj)).To(Equal(want))
		g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		_, still := obj.Annotations[constants.OperationAnnotation]
		g.Expect(still).To(Equal(want != lifecycle.Reconcile), "only a request to reconcile is taken away")
		g.Expect(obj.Annotations).To(HaveKeyWithValue("other", "stays"))
	}
}

func TestFinalizers(t *testing.T) {
	g := NewWithT(t)
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: env.Namespace(t), Name: "x", Finalizers: []string{"example.org/b", "example.org/a"},
	}}
	g.Expect(env.Client.Create(t.Context(), obj)).To(Succeed())
	stale := obj.DeepCopy()
	label := func() { obj.Labels = map[string]string{"l": "v"} }
	g.Expect(lifecycle.AddFinalizer(t.Context(), env.Client, obj, "example.org/own", label)).To(Succeed())
	g.Expect(lifecycle.AddFinalizer(t.Context(), env.Client, obj, "example.org/own")).To(Succeed())
	g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	g.Expect(obj.Finalizers).To(ConsistOf("example.org/a", "example.org/b", "example.org/own"))
	g.Expect(obj.Labels).To(HaveKeyWithValue("l", "v"))
	g.Expect(lifecycle.ForeignFinalizers(obj, "example.org/own")).To(Equal([]string{"example.org/a", "example.org/b"}))
	g.Expect(lifecycle.AddFinalizer(t.Context(), env.Client, stale, "example.org/late")).NotTo(Succeed(), "somebody else was faster")

	g.Expect(lifecycle.RemoveFinalizer(t.Context(), env.Client, obj, "example.org/own")).To(Succeed())
	g.Expect(lifecycle.RemoveFinalizer(t.Context(), env.Client, obj, "example.org/own")).To(Succeed())
	g.Expect(obj.Finalizers).To(ConsistOf("example.org/a", "example.org/b"))
}

func TestFinalizersOfAnObjectThatIsGone(t *testing.T) {
	g := NewWithT(t)
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: env.Namespace(t), Name: "x", Finalizers: []string{"example.org/own"},
	}}
	g.Expect(env.Client.Create(t.Context(), obj)).To(Succeed())
	g.Expect(env.Client.Delete(t.Context(), obj)).To(Succeed())
	g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	stale := obj.DeepCopy()
	g.Expect(lifecycle.RemoveFinalizer(t.Context(), env.Client, obj, "example.org/own")).To(Succeed())
	g.Expect(apierrors.IsNotFound(env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), &corev1.ConfigMap{}))).To(BeTrue())
	g.Expect(lifecycle.RemoveFinalizer(t.Context(), env.Client, stale, "example.org/own")).To(Succeed(), "gone is what was wanted")
	g.Expect(lifecycle.AddFinalizer(t.Context(), env.Client, stale, "example.org/own")).NotTo(Succeed())
	g.Expect(lifecycle.ForeignFinalizers(&corev1.ConfigMap{}, "example.org/own")).To(BeEmpty())
}

func TestARequestIsNotTakenFromAStaleObject(t *testing.T) {
	g := NewWithT(t)
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "x", Annotations: map[string]string{
		constants.OperationAnnotation: constants.OperationAnnotationValueReconcile,
	}}}
	g.Expect(env.Client.Create(t.Context(), obj)).To(Succeed())
	stale := obj.DeepCopy()
	obj.Annotations[constants.OperationAnnotation] = constants.OperationAnnotationValueIgnore
	g.Expect(env.Client.Update(t.Context(), obj)).To(Succeed())
	_, err := lifecycle.TakeOperation(t.Context(), env.Client, stale)
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	g.Expect(obj.Annotations).To(HaveKey(constants.OperationAnnotation), "what came meanwhile is not lost")
}
