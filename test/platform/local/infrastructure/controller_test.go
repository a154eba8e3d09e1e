// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/infrastructure/v1alpha1"
)

func TestChooseEndpoint(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	reconciler := func(objs ...client.Object) *Reconciler {
		return &Reconciler{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build()}
	}
	chosen := clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 31000}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "one", UID: "1"}

	t.Run("keeps the one that is set", func(t *testing.T) {
		g := NewWithT(t)
		local := &infrav1.LocalCluster{ObjectMeta: meta, Spec: infrav1.LocalClusterSpec{ControlPlaneEndpoint: chosen}}
		g.Expect(reconciler().chooseEndpoint(t.Context(), local)).To(Succeed())
		g.Expect(local.Spec.ControlPlaneEndpoint).To(Equal(chosen))
	})
	t.Run("takes the one that the cache does not know yet", func(t *testing.T) {
		g := NewWithT(t)
		stored := &infrav1.LocalCluster{ObjectMeta: meta, Spec: infrav1.LocalClusterSpec{ControlPlaneEndpoint: chosen}}
		local := &infrav1.LocalCluster{ObjectMeta: meta}
		g.Expect(reconciler(stored).chooseEndpoint(t.Context(), local)).To(Succeed())
		g.Expect(local.Spec.ControlPlaneEndpoint).To(Equal(chosen))
	})
	t.Run("chooses another one for each", func(t *testing.T) {
		g := NewWithT(t)
		one, two := &infrav1.LocalCluster{ObjectMeta: meta}, &infrav1.LocalCluster{}
		r := reconciler()
		g.Expect(r.chooseEndpoint(t.Context(), one)).To(Succeed())
		g.Expect(r.chooseEndpoint(t.Context(), two)).To(Succeed())
		g.Expect(one.Spec.ControlPlaneEndpoint.Host).To(Equal("127.0.0.1"))
		g.Expect(one.Spec.ControlPlaneEndpoint.Port).NotTo(Equal(two.Spec.ControlPlaneEndpoint.Port))
	})
}
