// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// concurrency is how many Clusters are reconciled at the same time; each waits for the platform cluster's API mostly.
const concurrency = 8

// SetupWithManager makes the manager call Reconcile for all that can change the outcome for a Cluster.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.uncached = mgr.GetAPIReader()
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		predicate.LabelChangedPredicate{}, finalizersChanged)
	return ctrl.NewControllerManagedBy(mgr).Named("cluster").
		For(&clustersv1.Cluster{}, builder.WithPredicates(changed)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.clusterOf)).
		Watches(&clustersv1.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfProfile),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&providerv1.ProviderConfig{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfConfig)).
		Watches(&clusterv1.ClusterClass{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfClass),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(r)
}

// finalizersChanged lets through that somebody takes hold of an object, or lets it go.
var finalizersChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers())
}}

// clusterOf returns the Cluster that a CAPI Cluster was made from.
func (r *Reconciler) clusterOf(_ context.Context, obj client.Object) []reconcile.Request {
	if obj.GetLabels()[providerv1.ManagedByLabel] == r.ProviderName {
		if name := obj.GetAnnotations()[providerv1.ClusterNameAnnotation]; name != "" {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
		}
	}
	return nil
}

// clustersOfProfile returns the Clusters of a ClusterProfile.
func (r *Reconciler) clustersOfProfile(ctx context.Context, profile client.Object) []reconcile.Request {
	return r.clustersOfProfiles(ctx, func(p clustersv1.ClusterProfile) bool { return p.Name == profile.GetName() })
}

// clustersOfConfig returns the Clusters whose profiles belong to a ProviderConfig.
func (r *Reconciler) clustersOfConfig(ctx context.Context, config client.Object) []reconcile.Request {
	return r.clustersOfProfiles(ctx, func(p clustersv1.ClusterProfile) bool { return p.Spec.ProviderConfigRef.Name == config.GetName() })
}

// clustersOfClass returns the Clusters that are made from a ClusterClass.
func (r *Reconciler) clustersOfClass(ctx context.Context, class client.Object) []reconcile.Request {
	configs := &providerv1.ProviderConfigList{}
	if err := r.Client.List(ctx, configs); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "List ProviderConfigs")
		return nil
	}
	users := map[string]bool{}
	for _, config := range configs.Items {
		for _, profile := range config.Spec.Profiles {
			ref := profile.Template.Topology.ClassRef
			if ref.Name == class.GetName() && cmp.Or(ref.Namespace, class.GetNamespace()) == class.GetNamespace() {
				users[config.Name] = true
			}
		}
	}
	return r.clustersOfProfiles(ctx, func(p clustersv1.ClusterProfile) bool { return users[p.Spec.ProviderConfigRef.Name] })
}

// clustersOfProfiles returns the Clusters of those of our ClusterProfiles that match.
func (r *Reconciler) clustersOfProfiles(ctx context.Context, match func(clustersv1.ClusterProfile) bool) []reconcile.Request {
	profiles, clusters := &clustersv1.ClusterProfileList{}, &clustersv1.ClusterList{}
	for _, list := range []client.ObjectList{profiles, clusters} {
		if err := r.Client.List(ctx, list); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "List the Clusters that a change concerns")
			return nil
		}
	}
	matching := map[string]bool{}
	for _, p := range profiles.Items {
		matching[p.Name] = p.Spec.ProviderRef.Name == r.ProviderName && match(p)
	}
	var requests []reconcile.Request
	for _, c := range clusters.Items {
		if matching[c.Spec.Profile] {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&c)})
		}
	}
	return requests
}
