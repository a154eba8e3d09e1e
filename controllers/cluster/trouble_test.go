// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

// errRefused is what CAPI's webhook says.
var errRefused = apierrors.NewForbidden(
	clusterv1.GroupVersion.WithResource("clusters").GroupResource(), "team", errors.New("version cannot be increased by two"))

func TestReportsWhatCAPIRefuses(t *testing.T) {
	f := newFixture(t)
	f.client.refusal = errRefused
	f.create(f.cluster)
	live, err := f.reconcile()
	f.Expect(err).To(MatchError(ContainSubstring("by two")), "it is tried again")
	f.Expect(live).To(testenv.HaveCondition(providerv1.TemplateAppliedCondition, metav1.ConditionFalse, providerv1.ReasonRejected))
	f.Expect(message(live, providerv1.TemplateAppliedCondition)).To(ContainSubstring("version cannot be increased by two"))
	f.client.refusal = nil
	f.Expect(f.settle()).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
}

func TestARefusedUpdateLeavesTheClusterAvailable(t *testing.T) {
	f := newFixture(t)
	f.cluster.Spec.Kubernetes.Version = "1.35.0"
	f.create(f.cluster)
	f.settle()
	f.client.refusal = errRefused
	f.update(func(c *clustersv1.Cluster) { c.Spec.Kubernetes.Version = "1.36.3" })
	live, err := f.reconcile()
	f.Expect(err).To(HaveOccurred(), "it is tried again")
	f.Expect(live).To(testenv.HaveCondition(providerv1.TemplateAppliedCondition, metav1.ConditionFalse, providerv1.ReasonRejected))
	f.Expect(live).To(testenv.HaveCondition(providerv1.ClusterAvailableCondition, metav1.ConditionTrue, providerv1.ReasonSucceeded))
	f.Expect(live.Labels).To(HaveKeyWithValue(clustersv1.K8sVersionLabel, "1.35.0"))
	f.client.refusal = nil
	f.Expect(f.settle().Labels).To(HaveKeyWithValue(clustersv1.K8sVersionLabel, "1.36.3"))
}

func TestARunningClusterOutlivesItsProfile(t *testing.T) {
	f := newFixture(t)
	f.create(f.cluster)
	f.settle()
	// CAPI does not tell the versions of every control plane.
	capi := f.capiClusters()[0]
	capi.Status.ControlPlane = nil
	f.Expect(env.Client.Status().Update(f.ctx, &capi)).To(Succeed())
	f.Expect(env.Client.Delete(f.ctx, f.config)).To(Succeed())
	for range 2 {
		live := f.settle()
		f.Expect(live).To(testenv.HaveCondition(providerv1.AcceptedCondition, metav1.ConditionFalse, providerv1.ReasonProfileNotFound))
		f.Expect(live).To(testenv.HaveCondition(providerv1.ClusterAvailableCondition, metav1.ConditionTrue, providerv1.ReasonSucceeded))
		f.Expect(live.Labels).To(HaveKeyWithValue(clustersv1.K8sVersionLabel, "1.36.3"))
		f.Expect(live.Status.Endpoints).To(HaveLen(1))
		// And once more without the ClusterProfile.
		f.Expect(client.IgnoreNotFound(env.Client.Delete(f.ctx, f.profile))).To(Succeed())
	}
}

func TestDoesNotTakeWhatTheCacheDoesNotKnowYet(t *testing.T) {
	f := newFixture(t)
	f.create(f.cluster, &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "team"},
		Spec:       clusterv1.ClusterSpec{Topology: clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "theirs"}, Version: "v1.30.0"}},
	})
	f.client.stale = true
	live, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(live).To(testenv.HaveCondition(providerv1.TemplateAppliedCondition, metav1.ConditionFalse, providerv1.ReasonClusterConflict))
	f.Expect(f.capiClusters()[0].Spec.Topology.ClassRef.Name).To(Equal("theirs"))
	f.Expect(f.capiClusters()[0].Labels).To(BeEmpty())
}

func TestDeletesWhatTheCacheDoesNotKnowYet(t *testing.T) {
	f := newFixture(t)
	f.create(f.cluster)
	_, err := f.reconcile()
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.capiClusters()).To(HaveLen(1))
	f.client.stale = true
	f.Expect(env.Client.Delete(f.ctx, f.cluster)).To(Succeed())
	f.Expect(f.settle()).To(BeNil())
	f.Expect(f.capiClusters()).To(BeEmpty())
}

func TestTellsApartWhatIsShortenedToTheSameName(t *testing.T) {
	f := newFixture(t)
	f.cluster.Name = strings.Repeat("long.", 50) + "end"
	f.create(f.cluster)
	live := f.settle()
	f.Expect(live).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionTrue, providerv1.ReasonReady))
	first := f.capiClusters()[0]
	f.Expect(storedStatus(live).ClusterName).To(Equal(first.Name))

	second := f.cluster.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Namespace: f.namespace, Name: first.Name}
	f.create(second)
	f.cluster = second
	f.Expect(f.settle()).To(testenv.HaveCondition(providerv1.AcceptedCondition, metav1.ConditionFalse, providerv1.ReasonClusterConflict))
	f.Expect(f.capiClusters()).To(HaveLen(1))
	f.Expect(f.capiClusters()[0].UID).To(Equal(first.UID))
	f.Expect(env.Client.Delete(f.ctx, second)).To(Succeed())
	f.Expect(f.settle()).To(BeNil())
	f.Expect(f.capiClusters()).To(HaveLen(1), "the other's CAPI Cluster")
}

func TestANameNeverChanges(t *testing.T) {
	f := newFixture(t)
	f.cluster.Name = "a-name-of-some-length-that-is-kept"
	f.create(f.cluster)
	f.settle()
	f.config.Spec.Profiles[0].Template.NameMaxLength = 20
	f.Expect(env.Client.Update(f.ctx, f.config)).To(Succeed())
	f.setProviders(metav1.ConditionTrue)
	f.restart()
	live := f.settle()
	f.Expect(storedStatus(live).ClusterName).To(Equal(f.cluster.Name))
	live.Status = clustersv1.ClusterStatus{}
	f.Expect(env.Client.Status().Update(f.ctx, live)).To(Succeed())
	f.Expect(storedStatus(f.settle()).ClusterName).To(Equal(f.cluster.Name), "found again by its labels")
	f.Expect(f.capiClusters()).To(HaveLen(1))
}

func TestCountsClustersByPhase(t *testing.T) {
	f := newFixture(t)
	f.create(f.cluster)
	f.settle()
	other := f.cluster.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Namespace: f.namespace, Name: "other"}
	other.Spec.Kubernetes.Version = "1.20"
	f.create(other)
	f.cluster = other
	f.settle()
	f.Expect(testutil.CollectAndCompare(f.reconciler.Collector(), strings.NewReader(strings.ReplaceAll(`
# HELP cluster_provider_capi_clusters Number of Clusters of this provider, by ClusterProfile and phase.
# TYPE cluster_provider_capi_clusters gauge
cluster_provider_capi_clusters{phase="Progressing",profile="PROFILE"} 1
cluster_provider_capi_clusters{phase="Ready",profile="PROFILE"} 1
`, "PROFILE", f.profile.Name)))).To(Succeed())
}
