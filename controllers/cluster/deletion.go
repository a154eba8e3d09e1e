// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/lifecycle"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
)

// awaitForeignFinalizers waits until nobody else holds the Cluster: ClusterRequests and AccessRequests still use it.
func awaitForeignFinalizers(_ context.Context, s *scope) (pipeline.Outcome, error) {
	foreign := lifecycle.ForeignFinalizers(s.cluster, providerv1.ClusterFinalizer)
	if len(foreign) > 0 {
		return pipeline.Wait(providerv1.ReasonWaitingForFinalizers, "others still hold the Cluster: "+strings.Join(foreign, ", "), 0), nil
	}
	return pipeline.Done("nobody else holds the Cluster"), nil
}

// deleteCluster deletes the CAPI Cluster, and waits until it is gone: CAPI keeps it until all infrastructure is.
func deleteCluster(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	live, err := s.liveFrom(ctx, s.Client)
	if err == nil && live == nil {
		// The cache may not know a CAPI Cluster yet that was made a moment ago.
		live, err = s.liveFrom(ctx, s.reader())
	}
	if err != nil {
		return pipeline.Outcome{}, err
	}
	if live == nil {
		return pipeline.Done("the CAPI Cluster is gone"), nil
	}
	if err := s.Applier.Delete(ctx, live); err != nil {
		return pipeline.Outcome{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, err)
	}
	return pipeline.Wait(providerv1.ReasonDeleting, deletionMessage(live), 0), nil
}

// deletionMessage says what a CAPI Cluster that is being deleted waits for.
func deletionMessage(live *clusterv1.Cluster) string {
	message := fmt.Sprintf("CAPI Cluster %s/%s is being deleted", live.Namespace, live.Name)
	switch c := apimeta.FindStatusCondition(live.Status.Conditions, clusterv1.ClusterDeletingCondition); {
	case c == nil || c.Status != metav1.ConditionTrue:
		message += ": CAPI has not begun with it yet; if that stays so, see whether CAPI's core provider runs"
	case c.Message != "" || c.Reason != "":
		message += ": " + cmp.Or(c.Message, c.Reason)
	}
	if foreign := lifecycle.ForeignFinalizers(live, clusterv1.ClusterFinalizer); len(foreign) > 0 {
		message += "; besides CAPI, these hold it: " + strings.Join(foreign, ", ")
	}
	return message
}
