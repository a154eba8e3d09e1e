// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
)

// applyTemplate makes the CAPI Cluster, or makes it equal to what the profile says.
func applyTemplate(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	if s.profile == nil || s.version == "" {
		return pipeline.Report(providerv1.ReasonProfileNotFound, "the CAPI Cluster is left as it is, as its profile is not known"), nil
	}
	if s.live == nil {
		// What the cache does not know yet would be taken over by the apply.
		if outcome, err := s.checkConflict(ctx, s.reader()); err != nil || !outcome.IsDone() {
			return outcome, err
		}
	}
	wrote, err := s.Applier.Apply(ctx, desiredCluster(s))
	if err != nil && isRefusal(err) {
		if s.live == nil {
			return pipeline.Outcome{}, pipeline.Fail(providerv1.ReasonRejected, err)
		}
		s.retry = err
		return pipeline.Report(providerv1.ReasonRejected, err.Error()), nil
	}
	if err != nil {
		return pipeline.Outcome{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, err)
	}
	s.changed = wrote
	return pipeline.Done(fmt.Sprintf("CAPI Cluster %s/%s is as the profile says", s.status.Namespace, s.status.ClusterName)), nil
}

// isRefusal says whether the API server or one of CAPI's webhooks refuses an object for what is in it.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// newCluster is all that is known of a CAPI Cluster that was made a moment ago. To say of it what will be said when the
// cache knows it saves a write.
var newCluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Generation: 1}}

// checkHealth reports what CAPI says about the cluster.
func checkHealth(_ context.Context, s *scope) (pipeline.Outcome, error) {
	h := healthOf(newCluster)
	switch {
	case s.live != nil && s.changed:
		return pipeline.Report(providerv1.ReasonProgressing, unseenMessage), nil
	case s.live != nil:
		h = healthOf(s.live)
	}
	if !h.available {
		return pipeline.Report(providerv1.ReasonProgressing, h.message).Mirror(h.conditions...), nil
	}
	return pipeline.Done("CAPI reports the cluster as available").Mirror(h.conditions...), nil
}

// publishEndpoint shows the endpoint, and by labels and annotations what the cluster is.
func publishEndpoint(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	endpoint := endpointOf(s.live)
	if endpoint == "" {
		return pipeline.Wait(providerv1.ReasonProgressing, "the CAPI Cluster has no endpoint yet", 0), nil
	}
	s.cluster.Status.Endpoints.Set(clustersv1.APISERVER_ENDPOINT_EXTERNAL, endpoint)
	s.cluster.Status.APIServer = endpoint //nolint:staticcheck // consumers still read it
	if err := s.publish(ctx, publishedLabels(s), publishedAnnotations(s)); err != nil {
		return pipeline.Outcome{}, err
	}
	return pipeline.Done("the API server is " + endpoint), nil
}

// publish sets labels and annotations of the Cluster, unless it has them. The status in memory is left alone.
func (s *scope) publish(ctx context.Context, labels, annotations map[string]string) error {
	if contains(s.cluster.Labels, labels) && contains(s.cluster.Annotations, annotations) {
		return nil
	}
	patch, err := metadataPatch(labels, annotations)
	if err != nil {
		return err
	}
	target := &clustersv1.Cluster{}
	target.Namespace, target.Name = s.cluster.Namespace, s.cluster.Name
	if err := s.Client.Patch(ctx, target, patch); err != nil {
		return pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("label the Cluster: %w", err))
	}
	for _, cluster := range []*clustersv1.Cluster{s.cluster, s.before} {
		if cluster != nil {
			cluster.Labels, cluster.Annotations = target.Labels, target.Annotations
			cluster.ResourceVersion = target.ResourceVersion
		}
	}
	return nil
}

// contains says whether have has all that want has.
func contains(have, want map[string]string) bool {
	merged := maps.Clone(have)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, want)
	return maps.Equal(have, merged)
}
