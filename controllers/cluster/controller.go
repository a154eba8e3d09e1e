// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/apply"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/lifecycle"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
)

// normalSteps are what is done for a Cluster that is wanted.
var normalSteps = []pipeline.Step[*scope]{
	{Condition: providerv1.AcceptedCondition, Run: accept},
	{Condition: providerv1.ProvidersReadyCondition, Run: checkProviders},
	{Condition: providerv1.TemplateAppliedCondition, Run: applyTemplate},
	{Condition: providerv1.ClusterAvailableCondition, Run: checkHealth},
	{Condition: providerv1.EndpointPublishedCondition, Run: publishEndpoint},
}

// deletionSteps are what is done for a Cluster that is being deleted. When they are through, the finalizer goes.
var deletionSteps = []pipeline.Step[*scope]{
	{Condition: providerv1.ForeignFinalizersGoneCondition, Run: awaitForeignFinalizers},
	{Condition: providerv1.ClusterDeletedCondition, Run: deleteCluster},
}

// Reconciler reconciles OpenControlPlane Clusters.
type Reconciler struct {
	// Client reads from the cache and writes to the platform cluster.
	Client client.Client

	// Applier applies and deletes CAPI Clusters.
	Applier *apply.Applier

	// Recorder records the events.
	Recorder events.EventRecorder

	// ProviderName is the name of the ClusterProvider that this instance runs for.
	ProviderName string

	// Environment is the name of the OpenControlPlane environment.
	Environment string

	// Namespace is the namespace that the provider runs in.
	Namespace string

	// uncached reads past the cache. It is set by SetupWithManager; Client stands in for it before.
	uncached client.Reader

	// written are the newest versions of the Clusters, which the cache may not know yet.
	written written
}

// scope is what the steps of one reconciliation share.
type scope struct {
	// Reconciler has the dependencies, and who we are.
	*Reconciler

	// cluster is the Cluster. The steps set fields of its status, in memory.
	cluster *clustersv1.Cluster

	// before is the Cluster as it is on the platform cluster.
	before *clustersv1.Cluster

	// clusterProfile is the ClusterProfile that the Cluster names; nil when it is gone.
	clusterProfile *clustersv1.ClusterProfile

	// config is the ProviderConfig that the ClusterProfile names. Set by accept.
	config *providerv1.ProviderConfig

	// profile is the profile of that ProviderConfig. Set by accept.
	profile *providerv1.Profile

	// status is our part of the Cluster's status. Set by accept.
	status providerv1.ClusterStatus

	// live is our CAPI Cluster, as the cache knows it; nil when there is none. Set by accept.
	live *clusterv1.Cluster

	// version is the Kubernetes version that CAPI is asked for, with a leading v. It is that of live when no other can be
	// had, and empty when there is none. Set by accept.
	version string

	// changed says that the CAPI Cluster was written in this very reconciliation, so that live is not up to date. Set by
	// applyTemplate.
	changed bool

	// retry is an error that did not keep the steps behind from being run, but is worth another try. Set by applyTemplate.
	retry error
}

// Reconcile does what is to be done for one Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clustersv1.Cluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); apierrors.IsNotFound(err) {
		r.written.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if r.written.isNewerThan(req.NamespacedName, cluster.ResourceVersion, time.Now()) {
		return ctrl.Result{RequeueAfter: cacheLag}, nil
	}
	clusterProfile, ours, err := r.responsible(ctx, cluster)
	if err != nil || !ours {
		return ctrl.Result{}, err
	}
	defer func() { r.written.remember(req.NamespacedName, cluster.ResourceVersion, time.Now()) }()
	operation, err := lifecycle.TakeOperation(ctx, r.Client, cluster)
	if err != nil || operation == lifecycle.Ignore {
		return ctrl.Result{}, err
	}
	s := &scope{Reconciler: r, cluster: cluster, clusterProfile: clusterProfile}
	if cluster.DeletionTimestamp != nil {
		return r.reconcileDeletion(ctx, s)
	}
	return r.reconcileNormal(ctx, s)
}

// responsible returns the ClusterProfile of a Cluster, nil when it is gone, and whether the Cluster is ours. While its
// profile is gone, the Cluster belongs to the instance that has put its name and its finalizer on it.
func (r *Reconciler) responsible(ctx context.Context, cluster *clustersv1.Cluster) (*clustersv1.ClusterProfile, bool, error) {
	clusterProfile := &clustersv1.ClusterProfile{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: cluster.Spec.Profile}, clusterProfile)
	if apierrors.IsNotFound(err) {
		owner, known := cluster.Labels[clustersv1.ProviderLabel]
		mine := !known || owner == r.ProviderName
		return nil, mine && controllerutil.ContainsFinalizer(cluster, providerv1.ClusterFinalizer), nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read ClusterProfile %s: %w", cluster.Spec.Profile, err)
	}
	return clusterProfile, clusterProfile.Spec.ProviderRef.Name == r.ProviderName, nil
}

func (r *Reconciler) reconcileNormal(ctx context.Context, s *scope) (ctrl.Result, error) {
	// One write, so that the finalizer always has the name of its instance beside it.
	if err := lifecycle.AddFinalizer(ctx, r.Client, s.cluster, providerv1.ClusterFinalizer, func() {
		metav1.SetMetaDataLabel(&s.cluster.ObjectMeta, clustersv1.ProviderLabel, r.ProviderName)
	}); err != nil {
		return ctrl.Result{}, err
	}
	s.before = s.cluster.DeepCopy()
	outcome := pipeline.Run(ctx, s, normalSteps)
	result, err := r.runner().Conclude(ctx, s.cluster, s.before, outcome)
	if err == nil {
		err = s.retry
	}
	return result, err
}

func (r *Reconciler) reconcileDeletion(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s.cluster, providerv1.ClusterFinalizer) {
		return ctrl.Result{}, nil
	}
	s.before = s.cluster.DeepCopy()
	outcome := pipeline.Run(ctx, s, deletionSteps)
	result, err := r.runner().Conclude(ctx, s.cluster, s.before, outcome)
	if err != nil || !outcome.Finished() {
		return result, err
	}
	return ctrl.Result{}, lifecycle.RemoveFinalizer(ctx, r.Client, s.cluster, providerv1.ClusterFinalizer)
}

// reader returns what reads past the cache.
func (r *Reconciler) reader() client.Reader {
	if r.uncached == nil {
		return r.Client
	}
	return r.uncached
}

// runner returns what writes the status of Clusters.
func (r *Reconciler) runner() pipeline.Runner[*clustersv1.Cluster] {
	return pipeline.Runner[*clustersv1.Cluster]{
		Client:       r.Client,
		Recorder:     r.Recorder,
		Status:       func(c *clustersv1.Cluster) *commonapi.Status { return &c.Status.Status },
		MirrorPrefix: providerv1.CAPIConditionPrefix,
	}
}
