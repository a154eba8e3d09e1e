// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a LocalControlPlane's processes and tells Cluster API how they are. How they run is the
// matter of package workload.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	controlplanev1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/controlplane/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/local/workload"
)

const (
	// pollStarting is how often a starting API server is asked.
	pollStarting = 500 * time.Millisecond
	// pollRunning is how often a running one is.
	pollRunning = 20 * time.Second

	concurrency = 10
)

var kind = controlplanev1.GroupVersion.WithKind("LocalControlPlane")

// Reconciler of LocalControlPlanes.
type Reconciler struct {
	// Client must read Secrets without a cache.
	Client client.Client
	Host   *workload.Host
}

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&controlplanev1.LocalControlPlane{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(controlPlaneOf)).
		WatchesRawSource(source.Func(r.watchProcesses)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(r)
}

func controlPlaneOf(_ context.Context, cluster client.Object) []reconcile.Request {
	ref := cluster.(*clusterv1.Cluster).Spec.ControlPlaneRef
	if ref.GroupKind() != kind.GroupKind() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: cluster.GetNamespace(), Name: ref.Name}}}
}

// watchProcesses looks at a control plane as soon as one of its processes has ended.
func (r *Reconciler) watchProcesses(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			select {
			case key := <-r.Host.Changed():
				queue.Add(reconcile.Request{NamespacedName: key})
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// Reconcile runs the processes, also those of a paused cluster: only the objects of that are left alone.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	plane := &controlplanev1.LocalControlPlane{}
	if err := r.Client.Get(ctx, request.NamespacedName, plane); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if added, err := finalizers.EnsureFinalizer(ctx, r.Client, plane, controlplanev1.Finalizer); err != nil || added {
		return ctrl.Result{}, err
	}
	cluster, err := util.GetOwnerCluster(ctx, r.Client, plane.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if cluster == nil && plane.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	isPaused, requeue, err := paused.EnsurePausedCondition(ctx, r.Client, cluster, plane)
	switch {
	case err != nil || requeue:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	case isPaused:
		return r.keepRunning(ctx, cluster, plane)
	case !plane.DeletionTimestamp.IsZero():
		return ctrl.Result{}, r.remove(ctx, plane)
	}
	helper, err := patch.NewHelper(plane, r.Client)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer func() {
		err = errors.Join(err, helper.Patch(ctx, plane, patch.WithStatusObservedGeneration{}, patch.WithOwnedConditions{
			Conditions: []string{controlplanev1.AvailableCondition, controlplanev1.RollingOutCondition, clusterv1.PausedCondition},
		}))
	}()
	return r.run(ctx, cluster, plane)
}

// run starts the processes once the endpoint is known, and reports how they are.
func (r *Reconciler) run(
	ctx context.Context, cluster *clusterv1.Cluster, plane *controlplanev1.LocalControlPlane,
) (ctrl.Result, error) {
	if !cluster.Spec.ControlPlaneEndpoint.IsValid() {
		// The next event is the Cluster's.
		setAvailable(plane, metav1.ConditionFalse, clusterv1.WaitingForClusterInfrastructureReadyReason,
			"Waiting for the Cluster's spec.controlPlaneEndpoint")
		return ctrl.Result{}, nil
	}
	spec, err := r.spec(ctx, cluster, plane, true)
	if err != nil {
		setAvailable(plane, metav1.ConditionUnknown, clusterv1.InternalErrorReason, err.Error())
		return ctrl.Result{}, err
	}
	state, err := r.Host.Ensure(ctx, client.ObjectKeyFromObject(plane), spec)
	if errors.Is(err, workload.ErrTaken) {
		// The status is still the other's.
		return ctrl.Result{}, err
	}
	if err != nil {
		setAvailable(plane, metav1.ConditionFalse, clusterv1.InternalErrorReason, err.Error())
		return ctrl.Result{}, err
	}
	if state.Ready {
		if err := r.ensureKubeconfig(ctx, cluster, plane, spec); err != nil {
			return ctrl.Result{}, fmt.Errorf("publish the kubeconfig: %w", err)
		}
	}
	report(plane, state)
	if !state.Ready {
		return ctrl.Result{RequeueAfter: pollStarting}, nil
	}
	return ctrl.Result{RequeueAfter: pollRunning}, nil
}

// keepRunning runs what ran before the pause, as a restart of this process ends it.
func (r *Reconciler) keepRunning(
	ctx context.Context, cluster *clusterv1.Cluster, plane *controlplanev1.LocalControlPlane,
) (ctrl.Result, error) {
	if cluster == nil || plane.Status.Version == "" || !plane.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	spec, err := r.spec(ctx, cluster, plane, false)
	if err != nil {
		return ctrl.Result{}, err
	}
	spec.Version = plane.Status.Version
	state, err := r.Host.Ensure(ctx, client.ObjectKeyFromObject(plane), spec)
	if err != nil || state.Ready {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: pollStarting}, nil
}

// remove lets go of a control plane when nothing of it is left.
func (r *Reconciler) remove(ctx context.Context, plane *controlplanev1.LocalControlPlane) error {
	if !controllerutil.ContainsFinalizer(plane, controlplanev1.Finalizer) {
		return nil
	}
	if err := r.Host.Remove(client.ObjectKeyFromObject(plane), plane.UID); err != nil {
		return err
	}
	if err := r.removeSecrets(ctx, plane); err != nil {
		return err
	}
	before := plane.DeepCopy()
	controllerutil.RemoveFinalizer(plane, controlplanev1.Finalizer)
	return client.IgnoreNotFound(r.Client.Patch(ctx, plane, client.MergeFrom(before)))
}

// setAvailable sets the condition that Cluster API mirrors.
func setAvailable(plane *controlplanev1.LocalControlPlane, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(plane, metav1.Condition{
		Type: controlplanev1.AvailableCondition, Status: status, Reason: reason, Message: message,
	})
}
