// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
)

// phaseMetric is the metric of the Clusters in each phase.
const phaseMetric = "cluster_provider_capi_clusters"

// collectTimeout is how long a look into the cache may take.
const collectTimeout = 5 * time.Second

// phaseCollector counts the Clusters in each phase.
type phaseCollector struct {
	*Reconciler
	description *prometheus.Desc
}

// Collector returns what collects the metrics of Clusters.
func (r *Reconciler) Collector() prometheus.Collector {
	return &phaseCollector{r, prometheus.NewDesc(phaseMetric,
		"Number of Clusters of this provider, by ClusterProfile and phase.", []string{"profile", "phase"}, nil)}
}

// Describe describes the metric.
func (c *phaseCollector) Describe(out chan<- *prometheus.Desc) { out <- c.description }

// Collect collects the metric.
func (c *phaseCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	clusters := &clustersv1.ClusterList{}
	if err := c.Client.List(ctx, clusters); err != nil {
		ctrl.Log.WithName("metrics").Error(err, "List Clusters")
		return
	}
	type key struct{ profile, phase string }
	counts := map[key]int{}
	for _, cluster := range clusters.Items {
		if cluster.Labels[clustersv1.ProviderLabel] == c.ProviderName {
			counts[key{cluster.Spec.Profile, cluster.Status.Phase}]++
		}
	}
	for k, count := range counts {
		out <- prometheus.MustNewConstMetric(c.description, prometheus.GaugeValue, float64(count), k.profile, k.phase)
	}
}
