// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/access"
	"github.com/openmcp-project/cluster-provider-capi/controllers/cluster"
	"github.com/openmcp-project/cluster-provider-capi/controllers/config"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/apply"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/remote"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// Identity says who this instance of the provider is.
type Identity struct {
	// ProviderName is the name of the ClusterProvider that this instance runs for.
	ProviderName string

	// Environment is the name of the OpenControlPlane environment.
	Environment string

	// Namespace is the namespace that this instance runs in.
	Namespace string

	// Release is the release of this provider.
	Release string

	// Defaults stand in for what a ProviderConfig leaves out.
	Defaults gitops.Defaults
}

// CacheOptions are the options of the manager's cache. Of Secrets, only those that the controllers read keep their data.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&corev1.Secret{}: {Transform: stripSecret}},
	}
}

// stripSecret drops the data of a Secret that is neither CAPI's for one of its clusters nor ours, as nobody reads it.
func stripSecret(obj any) (any, error) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return obj, nil
	}
	secret.ManagedFields = nil
	_, ofCluster := secret.Labels[clusterv1.ClusterNameLabel]
	_, ours := secret.Labels[providerv1.ManagedByLabel]
	if !ofCluster && !ours {
		secret.Data, secret.StringData, secret.Annotations = nil, nil, nil
	}
	return secret, nil
}

// newConfigReconciler returns the reconciler of ProviderConfigs with a client of any kind. It records no events.
func newConfigReconciler(c client.Client, id Identity) *config.Reconciler {
	return &config.Reconciler{
		Client: c, Applier: apply.New(c), Clock: clock.RealClock{},
		ProviderName: id.ProviderName, Environment: id.Environment, Namespace: id.Namespace, Release: id.Release, Defaults: id.Defaults,
	}
}

// controller is what all three reconcilers have.
type controller interface {
	SetupWithManager(mgr ctrl.Manager) error
	Collector() prometheus.Collector
}

// Setup adds all controllers, and the metrics of what they work on, to the manager.
func Setup(mgr ctrl.Manager, id Identity) error {
	c := mgr.GetClient()
	recorder := mgr.GetEventRecorder(providerv1.ProviderName)
	configs := newConfigReconciler(c, id)
	configs.Recorder = recorder
	clusters := &cluster.Reconciler{
		Client: c, Applier: apply.New(c), Recorder: recorder,
		ProviderName: id.ProviderName, Environment: id.Environment, Namespace: id.Namespace,
	}
	accesses := &access.Reconciler{
		Client: c, Applier: apply.New(c), Recorder: recorder, Clock: clock.RealClock{}, Connector: remote.NewConnector(c),
		ProviderName: id.ProviderName, Environment: id.Environment, Namespace: id.Namespace,
	}
	for kind, controller := range map[string]controller{
		"ProviderConfigs": configs, "Clusters": clusters, "AccessRequests": accesses,
	} {
		if err := controller.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("set up the controller of %s: %w", kind, err)
		}
		if err := metrics.Registry.Register(controller.Collector()); err != nil {
			return fmt.Errorf("set up the metrics of %s: %w", kind, err)
		}
	}
	return nil
}
