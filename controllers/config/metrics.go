// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// readyMetric is the metric of the readiness of components.
const readyMetric = "cluster_provider_capi_component_ready"

// collectTimeout is how long a look into the cache may take.
const collectTimeout = 5 * time.Second

// readyCollector collects the readiness of the components of all ProviderConfigs, as their status has it.
type readyCollector struct {
	*Reconciler
	description *prometheus.Desc
}

// Collector returns what collects the metrics of ProviderConfigs.
func (r *Reconciler) Collector() prometheus.Collector {
	return &readyCollector{r, prometheus.NewDesc(readyMetric,
		"1 when a component of a ProviderConfig is installed in the wanted version and works, else 0.",
		[]string{"providerconfig", "type", "name"}, nil)}
}

// Describe describes the metric.
func (c *readyCollector) Describe(out chan<- *prometheus.Desc) { out <- c.description }

// Collect collects the metric.
func (c *readyCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	configs := &providerv1.ProviderConfigList{}
	if err := c.Client.List(ctx, configs); err != nil {
		ctrl.Log.WithName("metrics").Error(err, "List ProviderConfigs")
		return
	}
	for _, config := range configs.Items {
		if config.Spec.ProviderRef.Name != c.ProviderName {
			continue
		}
		for _, component := range config.Status.Components {
			value := 0.0
			if component.Ready {
				value = 1
			}
			out <- prometheus.MustNewConstMetric(c.description, prometheus.GaugeValue, value, config.Name, component.Type, component.Name)
		}
	}
}
