// SPDX-License-Identifier: Apache-2.0

package access

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// expiryMetric is the metric of the seconds until a token expires.
const expiryMetric = "cluster_provider_capi_access_token_expiry_seconds"

// Expiries returns when the tokens of granted requests expire.
func (r *Reconciler) Expiries() map[types.NamespacedName]time.Time {
	out := map[types.NamespacedName]time.Time{}
	for key, g := range r.granted.all() {
		if !g.expires.IsZero() {
			out[key] = g.expires
		}
	}
	return out
}

// expiryCollector collects the seconds until the tokens expire, as of the moment at which they are asked for.
type expiryCollector struct {
	*Reconciler
	description *prometheus.Desc
}

// Collector returns what collects the metrics of AccessRequests.
func (r *Reconciler) Collector() prometheus.Collector {
	return &expiryCollector{r, prometheus.NewDesc(expiryMetric,
		"Seconds until the token of a granted AccessRequest expires.", []string{"namespace", "name"}, nil)}
}

// Describe describes the metric.
func (c *expiryCollector) Describe(out chan<- *prometheus.Desc) { out <- c.description }

// Collect collects the metric.
func (c *expiryCollector) Collect(out chan<- prometheus.Metric) {
	for key, expires := range c.Expiries() {
		out <- prometheus.MustNewConstMetric(c.description, prometheus.GaugeValue,
			expires.Sub(c.Clock.Now()).Seconds(), key.Namespace, key.Name)
	}
}
