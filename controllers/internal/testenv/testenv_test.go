// SPDX-License-Identifier: Apache-2.0

package testenv_test

import (
	"os"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Run(m, &env)) }

func TestEnvServesAllKinds(t *testing.T) {
	for _, list := range []client.ObjectList{
		&providerv1.ProviderConfigList{}, &clustersv1.AccessRequestList{}, &clustersv1.ClusterList{},
		&clusterv1.ClusterList{}, &operatorv1.CoreProviderList{}, &helmv2.HelmReleaseList{},
		&kustomizev1.KustomizationList{}, &sourcev1.OCIRepositoryList{},
	} {
		g := NewWithT(t)
		g.Expect(env.Client.List(t.Context(), list)).To(Succeed(), "%T", list)
	}
}

func TestHaveCondition(t *testing.T) {
	g := NewWithT(t)
	cluster := &clusterv1.Cluster{Status: clusterv1.ClusterStatus{Conditions: []metav1.Condition{
		{Type: "Available", Status: metav1.ConditionTrue, Reason: "Fine"},
	}}}
	g.Expect(cluster).To(testenv.HaveCondition("Available", metav1.ConditionTrue, "Fine"))
	g.Expect(cluster).NotTo(testenv.HaveCondition("Available", metav1.ConditionFalse, "Fine"))
	g.Expect(cluster).NotTo(testenv.HaveCondition("Ready", metav1.ConditionTrue, "Fine"))
}
