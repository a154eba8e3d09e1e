// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	"github.com/openmcp-project/openmcp-operator/api/constants"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

func TestFromCreationToReady(t *testing.T) {
	f := newFixture(t)
	f.create(f.cluster)
	live, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition(providerv1.ClusterAvailableCondition, metav1.ConditionFalse, providerv1.ReasonProgressing))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseProgressing))

	live = f.settle()
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(live).To(testenv.HaveCondition(
		providerv1.CAPIConditionPrefix+clusterv1.ClusterAvailableCondition, metav1.ConditionTrue, "Played"))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseReady))
	f.Expect(live.Status.Endpoints).To(ConsistOf(
		clustersv1.Endpoint{Name: clustersv1.APISERVER_ENDPOINT_EXTERNAL, URL: "https://127.0.0.1:6443"}))
	f.Expect(live.Labels).To(And(
		HaveKeyWithValue(clustersv1.K8sVersionLabel, "1.36.3"), HaveKeyWithValue(clustersv1.ProviderLabel, f.namespace)))
	f.Expect(live.Annotations).To(HaveKeyWithValue(clustersv1.ProviderInfoAnnotation, "capi/"+f.namespace+"/team"))
	status := providerv1.ClusterStatus{}
	f.Expect(live.Status.GetProviderStatus(&status)).To(Succeed())
	f.Expect(status).To(Equal(providerv1.ClusterStatus{
		ClusterName: "team", Namespace: f.namespace, ProviderConfig: f.config.Name, Profile: "p", Version: "1.36.3",
	}))

	clusters := f.capiClusters()
	f.Expect(clusters).To(HaveLen(1))
	f.Expect(clusters[0].Spec.Topology.Version).To(Equal("v1.36.3"))
	f.Expect(clusters[0].Spec.Topology.ClassRef.Name).To(Equal("class"))
	f.Expect(clusters[0].Labels).To(HaveKeyWithValue("metadata.open-control-plane.io/team", "a"))
	f.Expect(clusters[0].Labels).NotTo(HaveKey("other"))
	f.Expect(f.client.count).To(BeNumerically("<=", 6), "writes from creation to Ready")

	before := f.client.count
	_, err = f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.client.count).To(Equal(before), "writes although nothing has changed")
}

func TestIsNotReadyWhenCAPISaysSo(t *testing.T) {
	f := newFixture(t)
	f.create(f.cluster)
	f.settle()
	capi := f.capiClusters()[0]
	f.playStatus(&capi, metav1.ConditionFalse)
	live := f.settle()
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionFalse, providerv1.ReasonProgressing))
	f.Expect(message(live, providerv1.ReadyCondition)).To(ContainSubstring("as CAPI says"))
	f.Expect(live.Status.Endpoints).To(HaveLen(1), "a cluster that is not well keeps its endpoint")
}

func TestVersions(t *testing.T) {
	f := newFixture(t)
	f.cluster.Spec.Kubernetes.Version = "1.20"
	f.create(f.cluster)
	live := f.settle()
	f.Expect(live).To(testenv.HaveCondition(providerv1.AcceptedCondition, metav1.ConditionFalse, providerv1.ReasonVersionNotSupported))
	f.Expect(message(live, providerv1.AcceptedCondition)).To(And(ContainSubstring("1.20"), ContainSubstring("1.36.3, 1.35.0")))
	f.Expect(f.capiClusters()).To(BeEmpty())

	f.update(func(c *clustersv1.Cluster) { c.Spec.Kubernetes.Version = "1.35" })
	f.Expect(f.settle().Labels).To(HaveKeyWithValue(clustersv1.K8sVersionLabel, "1.35.0"))
	f.update(func(c *clustersv1.Cluster) { c.Spec.Kubernetes.Version = "v1.36.3" })
	f.Expect(f.settle().Labels).To(HaveKeyWithValue(clustersv1.K8sVersionLabel, "1.36.3"))
	f.update(func(c *clustersv1.Cluster) { c.Spec.Kubernetes.Version = "1.35.0" })
	live = f.settle()
	f.Expect(live).To(testenv.HaveCondition(providerv1.AcceptedCondition, metav1.ConditionFalse, providerv1.ReasonDowngradeNotSupported))
	f.Expect(live).To(testenv.HaveCondition(providerv1.ClusterAvailableCondition, metav1.ConditionTrue, providerv1.ReasonSucceeded))
	f.Expect(f.capiClusters()[0].Spec.Topology.Version).To(Equal("v1.36.3"))
}

func TestWaitsForProvidersAndClusterClass(t *testing.T) {
	f := newFixture(t)
	f.setProviders(metav1.ConditionFalse)
	f.Expect(env.Client.Delete(f.ctx, f.class)).To(Succeed())
	f.create(f.cluster)
	live := f.settle()
	f.Expect(live).To(testenv.HaveCondition(providerv1.AcceptedCondition, metav1.ConditionFalse, providerv1.ReasonClusterClassNotFound))
	f.class.ResourceVersion = ""
	f.create(f.class)
	f.Expect(f.reconciler.clustersOfClass(f.ctx, f.class)).To(HaveLen(1))
	live = f.settle()
	f.Expect(live).To(testenv.HaveCondition(providerv1.ProvidersReadyCondition, metav1.ConditionFalse, providerv1.ReasonProvidersNotReady))
	f.Expect(f.capiClusters()).To(BeEmpty())

	f.setProviders(metav1.ConditionTrue)
	f.Expect(f.reconciler.clustersOfConfig(f.ctx, f.config)).To(HaveLen(1))
	f.Expect(f.settle()).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.setProviders(metav1.ConditionFalse)
	live = f.settle()
	f.Expect(live).To(testenv.HaveCondition(providerv1.ProvidersReadyCondition, metav1.ConditionFalse, providerv1.ReasonProvidersNotReady))
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseReady))
}

func TestNeverTakesAForeignCAPICluster(t *testing.T) {
	f := newFixture(t)
	foreign := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "team"},
		Spec:       clusterv1.ClusterSpec{Topology: clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "theirs"}, Version: "v1.30.0"}},
	}
	f.create(f.cluster, foreign)
	live, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition(providerv1.AcceptedCondition, metav1.ConditionFalse, providerv1.ReasonClusterConflict))
	f.Expect(env.Client.Delete(f.ctx, f.cluster)).To(Succeed())
	gone, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(gone).To(BeNil())
	f.Expect(f.capiClusters()).To(HaveLen(1))
	f.Expect(f.capiClusters()[0].Spec.Topology.ClassRef.Name).To(Equal("theirs"))
}

func TestFindsItsCAPIClusterWhenTheStatusIsLost(t *testing.T) {
	f := newFixture(t)
	f.create(f.cluster)
	live := f.settle()
	live.Status = clustersv1.ClusterStatus{}
	f.Expect(env.Client.Status().Update(f.ctx, live)).To(Succeed())
	f.Expect(f.settle()).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	f.Expect(f.capiClusters()).To(HaveLen(1))
}

func TestDeletionWaitsForOthersAndForCAPI(t *testing.T) {
	f := newFixture(t)
	f.cluster.Finalizers = []string{"example.org/someone"}
	f.create(f.cluster)
	f.settle()
	capi := f.capiClusters()[0]
	capi.Finalizers = []string{clusterv1.ClusterFinalizer, "example.org/third"}
	f.Expect(env.Client.Update(f.ctx, &capi)).To(Succeed())
	f.Expect(env.Client.Delete(f.ctx, f.cluster)).To(Succeed())
	// The rest works without the ProviderConfig and its profile.
	f.Expect(env.Client.Delete(f.ctx, f.config)).To(Succeed())
	f.Expect(env.Client.Delete(f.ctx, f.profile)).To(Succeed())

	live := f.settle()
	f.Expect(live).To(testenv.HaveCondition(
		providerv1.ForeignFinalizersGoneCondition, metav1.ConditionFalse, providerv1.ReasonWaitingForFinalizers))
	f.Expect(message(live, providerv1.ForeignFinalizersGoneCondition)).To(ContainSubstring("example.org/someone"))
	f.Expect(live.Status.Phase).To(Equal(commonapi.StatusPhaseTerminating))
	f.Expect(f.capiClusters()[0].DeletionTimestamp).To(BeNil())

	f.update(func(c *clustersv1.Cluster) { c.Finalizers = []string{providerv1.ClusterFinalizer} })
	live = f.settle()
	f.Expect(live).To(testenv.HaveCondition(providerv1.ClusterDeletedCondition, metav1.ConditionFalse, providerv1.ReasonDeleting))
	f.Expect(message(live, providerv1.ClusterDeletedCondition)).To(ContainSubstring("example.org/third"))
	capi = f.capiClusters()[0]
	f.Expect(capi.DeletionTimestamp).NotTo(BeNil())
	capi.Finalizers = nil
	f.Expect(env.Client.Update(f.ctx, &capi)).To(Succeed())
	f.Expect(f.settle()).To(BeNil())
}

func TestOperationAnnotation(t *testing.T) {
	f := newFixture(t)
	f.cluster.Annotations = map[string]string{constants.OperationAnnotation: constants.OperationAnnotationValueIgnore}
	f.create(f.cluster)
	live := f.settle()
	f.Expect(live.Finalizers).To(BeEmpty())
	f.update(func(c *clustersv1.Cluster) {
		c.Annotations[constants.OperationAnnotation] = constants.OperationAnnotationValueReconcile
	})
	live = f.settle()
	f.Expect(live.Annotations).NotTo(HaveKey(constants.OperationAnnotation))
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
}

func TestIgnoresClustersOfOtherProviders(t *testing.T) {
	f := newFixture(t)
	f.reconciler.ProviderName = "other"
	f.create(f.cluster)
	live := f.settle()
	f.Expect(live.Finalizers).To(BeEmpty())
	f.Expect(live.Status.Conditions).To(BeEmpty())
}

// TestSurvivesACrashAtAnyWrite stops the provider at each write in turn, from creation to deletion - before it, and after
// it but before its answer - starts it anew, and finds the same end each time.
func TestSurvivesACrashAtAnyWrite(t *testing.T) {
	for name, lost := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) { crashAtAnyWrite(t, lost) })
	}
}

func crashAtAnyWrite(t *testing.T, lost bool) {
	t.Helper()
	for fail := 1; ; fail++ {
		f := newFixture(t)
		f.client.fail, f.client.lost = fail, lost
		f.create(f.cluster)
		live := f.settle()
		f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady), "write %d", fail)
		f.Expect(live.Labels).To(HaveKeyWithValue(clustersv1.K8sVersionLabel, "1.36.3"), "write %d", fail)
		f.Expect(storedStatus(live).ClusterName).To(Equal("team"), "write %d", fail)
		f.Expect(f.capiClusters()).To(HaveLen(1))
		f.Expect(env.Client.Delete(f.ctx, f.cluster)).To(Succeed())
		f.Expect(f.settle()).To(BeNil(), "write %d", fail)
		f.Expect(f.capiClusters()).To(BeEmpty())
		if f.client.count < fail {
			return
		}
	}
}
