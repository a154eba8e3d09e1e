// SPDX-License-Identifier: Apache-2.0

// Package infrastructure gives each LocalCluster its endpoint: a port of the loopback address that no other has. The API
// server that listens there is the control plane's.
package infrastructure

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	infrav1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/infrastructure/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/proc"
)

const loopback = "127.0.0.1"

// Reconciler of LocalClusters.
type Reconciler struct {
	Client client.Client
	// Reader reads without a cache, so that an endpoint that was chosen a moment ago is seen.
	Reader client.Reader
}

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	kind := infrav1.GroupVersion.WithKind("LocalCluster")
	return ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.LocalCluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(
			util.ClusterToInfrastructureMapFunc(ctx, kind, mgr.GetClient(), &infrav1.LocalCluster{}))).
		// One after the other: two must not choose the same port.
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(r)
}

// Reconcile chooses the endpoint once. Nothing is to be done when a LocalCluster is deleted, so it has no finalizer.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	local := &infrav1.LocalCluster{}
	if err := r.Client.Get(ctx, request.NamespacedName, local); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cluster, err := util.GetOwnerCluster(ctx, r.Client, local.ObjectMeta)
	if err != nil || cluster == nil || !local.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if isPaused, requeue, err := paused.EnsurePausedCondition(ctx, r.Client, cluster, local); err != nil || isPaused || requeue {
		return ctrl.Result{}, err
	}
	helper, err := patch.NewHelper(local, r.Client)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.chooseEndpoint(ctx, local); err != nil {
		return ctrl.Result{}, err
	}
	local.Status.Initialization.Provisioned = ptr.To(true)
	conditions.Set(local, metav1.Condition{
		Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: clusterv1.ProvisionedReason,
		Message: "The endpoint is " + local.Spec.ControlPlaneEndpoint.String(),
	})
	err = helper.Patch(ctx, local, patch.WithStatusObservedGeneration{},
		patch.WithOwnedConditions{Conditions: []string{clusterv1.ReadyCondition, clusterv1.PausedCondition}})
	if err != nil {
		// What was deleted in the meantime needs no status.
		return ctrl.Result{}, kerrors.FilterOut(err, func(err error) bool { return client.IgnoreNotFound(err) == nil })
	}
	return ctrl.Result{}, nil
}

// chooseEndpoint finds a port that is free and that no other LocalCluster has, whether it is used right now or not.
func (r *Reconciler) chooseEndpoint(ctx context.Context, local *infrav1.LocalCluster) error {
	if local.Spec.ControlPlaneEndpoint.IsValid() {
		return nil
	}
	all := &infrav1.LocalClusterList{}
	if err := r.Reader.List(ctx, all); err != nil {
		return fmt.Errorf("list the endpoints that are taken: %w", err)
	}
	taken := map[int32]bool{}
	for _, other := range all.Items {
		taken[other.Spec.ControlPlaneEndpoint.Port] = true
		if other.UID == local.UID && other.Spec.ControlPlaneEndpoint.IsValid() {
			local.Spec.ControlPlaneEndpoint = other.Spec.ControlPlaneEndpoint
			return nil
		}
	}
	for {
		port, err := proc.FreePort()
		if err != nil {
			return err
		}
		if !taken[int32(port)] {
			local.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: loopback, Port: int32(port)}
			return nil
		}
	}
}
