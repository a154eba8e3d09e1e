// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/remote"
)

const (
	// clusterIndex finds the AccessRequests of a Cluster.
	clusterIndex = "spec.clusterRef"

	// workers is how many requests are worked on at once: one cluster that does not answer must not hold up the others.
	workers = 10
)

// SetupWithManager makes the manager call Reconcile for all that can change the outcome for an AccessRequest.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &clustersv1.AccessRequest{}, clusterIndex, clusterOf); err != nil {
		return fmt.Errorf("index AccessRequests: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("accessrequest").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		For(&clustersv1.AccessRequest{}, builder.WithPredicates(requestChanged)).
		Owns(&corev1.Secret{}).
		Watches(&clustersv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.requestsOfCluster), builder.WithPredicates(clusterChanged)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.requestsOfKubeconfig), builder.WithPredicates(isKubeconfig)).
		Complete(r)
}

// requestChanged lets through what others change of a request: spec, labels, annotations, and the phase, by which
// openmcp-operator hands the request over.
var requestChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*clustersv1.AccessRequest)
	after, ok2 := e.ObjectNew.(*clustersv1.AccessRequest)
	return ok && ok2 && (before.Generation != after.Generation || before.Status.Phase != after.Status.Phase ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations))
}}

// clusterChanged lets through what matters of a Cluster: its existence, its endpoints and our part of its status.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*clustersv1.Cluster)
	after, ok2 := e.ObjectNew.(*clustersv1.Cluster)
	return ok && ok2 && (before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(before.Status.Endpoints, after.Status.Endpoints) ||
		!equality.Semantic.DeepEqual(before.Status.ProviderStatus, after.Status.ProviderStatus))
}}

// isKubeconfig lets through the Secrets with admin kubeconfigs.
var isKubeconfig = predicate.NewPredicateFuncs(func(obj client.Object) bool {
	name, ok := obj.GetLabels()[clusterv1.ClusterNameLabel]
	return ok && obj.GetName() == remote.SecretName(name)
})

// clusterOf returns the Cluster of a request, as a value of the index.
func clusterOf(obj client.Object) []string {
	request, ok := obj.(*clustersv1.AccessRequest)
	if !ok || request.Spec.ClusterRef == nil {
		return nil
	}
	return []string{request.Spec.ClusterRef.Namespace + "/" + request.Spec.ClusterRef.Name}
}

// requestsOfCluster returns the AccessRequests of a Cluster.
func (r *Reconciler) requestsOfCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	list := &clustersv1.AccessRequestList{}
	key := client.ObjectKeyFromObject(cluster).String()
	if err := r.Client.List(ctx, list, client.MatchingFields{clusterIndex: key}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "List AccessRequests", "cluster", key)
		return nil
	}
	var out []reconcile.Request
	for _, request := range list.Items {
		if request.Labels[clustersv1.ProviderLabel] == r.ProviderName {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&request)})
		}
	}
	return out
}

// requestsOfKubeconfig returns the AccessRequests of the cluster whose admin kubeconfig a Secret holds.
func (r *Reconciler) requestsOfKubeconfig(ctx context.Context, secret client.Object) []reconcile.Request {
	list := &clustersv1.ClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(secret.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "List Clusters", "namespace", secret.GetNamespace())
		return nil
	}
	var out []reconcile.Request
	for _, cluster := range list.Items {
		var status providerv1.ClusterStatus
		raw := cluster.Status.ProviderStatus
		if raw != nil && json.Unmarshal(raw.Raw, &status) == nil && status.ClusterName == secret.GetLabels()[clusterv1.ClusterNameLabel] {
			out = append(out, r.requestsOfCluster(ctx, &cluster)...)
		}
	}
	return out
}
