// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
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
		Watches(&providerv1.ProviderConfig{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfConfig),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, providersChanged))).
		Watches(&clusterv1.ClusterClass{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfClass),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(r)
}

// finalizersChanged lets through that somebody takes hold of an object, or lets it go.
var finalizersChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
}}

// providersChanged lets through that a ProviderConfig says something new about its providers; it says much else besides.
var providersChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*providerv1.ProviderConfig)
	after, alsoOK := e.ObjectNew.(*providerv1.ProviderConfig)
	return ok && alsoOK && slices.ContainsFunc(providerConditions, func(kind string) bool {
		return !equality.Semantic.DeepEqual(
			apimeta.FindStatusCondition(before.Status.Conditions, kind), apimeta.FindStatusCondition(after.Status.Conditions, kind))
	})
}}

// clusterOf returns the Cluster that a CAPI Cluster was made from or, when it is somebody else's, those that would like to
// have its name.
func (r *Reconciler) clusterOf(ctx context.Context, obj client.Object) []reconcile.Request {
	if obj.GetLabels()[providerv1.ManagedByLabel] == r.ProviderName {
		if name := obj.GetAnnotations()[providerv1.ClusterNameAnnotation]; name != "" {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
		}
	}
	clusters := &clustersv1.ClusterList{}
	if err := r.Client.List(ctx, clusters, client.InNamespace(obj.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "List the Clusters that a CAPI Cluster concerns")
		return nil
	}
	return requestsFor(clusters, func(c *clustersv1.Cluster) bool {
		return storedStatus(c).ClusterName == obj.GetName()
	})
}

// clustersOfProfile returns the Clusters of a ClusterProfile, which may be gone by now.
func (r *Reconciler) clustersOfProfile(ctx context.Context, profile client.Object) []reconcile.Request {
	if p, ok := profile.(*clustersv1.ClusterProfile); !ok || p.Spec.ProviderRef.Name != r.ProviderName {
		return nil
	}
	return r.clustersOfProfiles(ctx, map[string]bool{profile.GetName(): true})
}

// clustersOfConfig returns the Clusters whose profiles belong to a ProviderConfig.
func (r *Reconciler) clustersOfConfig(ctx context.Context, config client.Object) []reconcile.Request {
	return r.clustersOfConfigs(ctx, map[string]bool{config.GetName(): true})
}

// clustersOfClass returns the Clusters of the ProviderConfigs that use a ClusterClass.
func (r *Reconciler) clustersOfClass(ctx context.Context, class client.Object) []reconcile.Request {
	configs := &providerv1.ProviderConfigList{}
	if err := r.Client.List(ctx, configs); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "List the ProviderConfigs that a ClusterClass concerns")
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
	return r.clustersOfConfigs(ctx, users)
}

// clustersOfConfigs returns the Clusters whose profiles belong to the named ProviderConfigs.
func (r *Reconciler) clustersOfConfigs(ctx context.Context, configs map[string]bool) []reconcile.Request {
	profiles := &clustersv1.ClusterProfileList{}
	if err := r.Client.List(ctx, profiles); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "List the ClusterProfiles that a change concerns")
		return nil
	}
	names := map[string]bool{}
	for _, p := range profiles.Items {
		if p.Spec.ProviderRef.Name == r.ProviderName && configs[p.Spec.ProviderConfigRef.Name] {
			names[p.Name] = true
		}
	}
	return r.clustersOfProfiles(ctx, names)
}

// clustersOfProfiles returns the Clusters of the named ClusterProfiles.
func (r *Reconciler) clustersOfProfiles(ctx context.Context, names map[string]bool) []reconcile.Request {
	if len(names) == 0 {
		return nil
	}
	clusters := &clustersv1.ClusterList{}
	if err := r.Client.List(ctx, clusters); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "List the Clusters that a change concerns")
		return nil
	}
	return requestsFor(clusters, func(c *clustersv1.Cluster) bool { return names[c.Spec.Profile] })
}

// requestsFor returns requests for those of the Clusters that match.
func requestsFor(clusters *clustersv1.ClusterList, match func(*clustersv1.Cluster) bool) []reconcile.Request {
	var requests []reconcile.Request
	for i := range clusters.Items {
		if c := &clusters.Items[i]; match(c) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		}
	}
	return requests
}
