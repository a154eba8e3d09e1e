// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	"github.com/openmcp-project/openmcp-operator/lib/utils"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/apply"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/lifecycle"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/remote"
)

// tokenSteps are what is done for a request for a token.
var tokenSteps = []pipeline.Step[*scope]{
	{Condition: providerv1.ClusterFoundCondition, Run: findCluster},
	{Condition: providerv1.ClusterReachableCondition, Run: connect},
	{Condition: providerv1.PermissionsGrantedCondition, Run: grantPermissions},
	{Condition: providerv1.KubeconfigIssuedCondition, Run: issueKubeconfig},
}

// oidcSteps are what is done for a request for OIDC access.
var oidcSteps = []pipeline.Step[*scope]{
	{Condition: providerv1.PermissionsGrantedCondition, Run: denyOIDC},
	{Condition: providerv1.KubeconfigIssuedCondition, Run: denyKubeconfig},
}

// deletionSteps are what is done for a request that is being deleted. When they are through, the finalizer goes.
var deletionSteps = []pipeline.Step[*scope]{
	{Condition: providerv1.PermissionsRevokedCondition, Run: revokePermissions},
}

// DefaultTokenLifetime is the lifetime that tokens are requested with. API servers may grant less.
const DefaultTokenLifetime = 7 * 24 * time.Hour

// Reconciler reconciles AccessRequests.
type Reconciler struct {
	// Client reads from the cache and writes to the platform cluster.
	Client client.Client

	// Applier applies and deletes the Secrets with kubeconfigs.
	Applier *apply.Applier

	// Recorder records the events.
	Recorder events.EventRecorder

	// Clock says when tokens are to be renewed.
	Clock clock.PassiveClock

	// Connector connects to the clusters.
	Connector *remote.Connector

	// ProviderName is the name of the ClusterProvider that this instance runs for.
	ProviderName string

	// Environment is the name of the OpenControlPlane environment.
	Environment string

	// Namespace is the namespace that the provider runs in.
	Namespace string

	// TokenLifetime is the lifetime that tokens are requested with: DefaultTokenLifetime when zero.
	TokenLifetime time.Duration

	granted memory
}

// scope is what the steps of one reconciliation share.
type scope struct {
	// Reconciler has the dependencies, and who we are.
	*Reconciler

	// request is the AccessRequest. The steps set fields of its status, in memory.
	request *clustersv1.AccessRequest

	// before is the AccessRequest as it is on the platform cluster.
	before *clustersv1.AccessRequest

	// secret is the Secret with the kubeconfig as the cache knows it; nil when there is none.
	secret *corev1.Secret

	// target is the cluster. Set by findCluster and revokePermissions.
	target target

	// connection is the connection to the cluster. Set by connect.
	connection *remote.Connection

	// remembered says that all is known to be as it should, so that there is nothing to do. Set by connect.
	remembered bool

	// account is the ServiceAccount in the cluster. Set by grantPermissions, unless all is remembered.
	account *corev1.ServiceAccount

	// denied says that the request will not be granted as it is. Set by denyOIDC.
	denied bool
}

// Reconcile does what is to be done for one AccessRequest.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	request := &clustersv1.AccessRequest{}
	if err := r.Client.Get(ctx, req.NamespacedName, request); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.granted.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.responsible(request) {
		return ctrl.Result{}, nil
	}
	operation, err := lifecycle.TakeOperation(ctx, r.Client, request)
	if err != nil || operation == lifecycle.Ignore {
		return ctrl.Result{}, err
	}
	if operation == lifecycle.Reconcile {
		// The order outlives a reconciliation that fails.
		r.granted.renew(req.NamespacedName)
	}
	s := &scope{Reconciler: r, request: request}
	if s.secret, err = r.readSecret(ctx, request); err != nil {
		return ctrl.Result{}, err
	}
	if request.DeletionTimestamp != nil {
		return r.reconcileDeletion(ctx, s)
	}
	return r.reconcileNormal(ctx, s)
}

// responsible says whether it is our turn. Of what is being deleted we let go in any phase: openmcp-operator only sets
// the phase again when the generation changes, and may not have done so yet.
func (r *Reconciler) responsible(request *clustersv1.AccessRequest) bool {
	if request.DeletionTimestamp != nil {
		return request.Labels[clustersv1.ProviderLabel] == r.ProviderName
	}
	return utils.IsClusterProviderResponsibleForAccessRequest(request, r.ProviderName)
}

func (r *Reconciler) reconcileNormal(ctx context.Context, s *scope) (ctrl.Result, error) {
	steps := oidcSteps
	if s.request.Spec.OIDC == nil {
		steps = tokenSteps
		if err := lifecycle.AddFinalizer(ctx, r.Client, s.request, providerv1.AccessRequestFinalizer); err != nil {
			return ctrl.Result{}, err
		}
	}
	s.before = s.request.DeepCopy()
	outcome := pipeline.Run(ctx, s, steps)
	if err := s.withdraw(ctx); err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.runner(s).Conclude(ctx, s.request, s.before, outcome)
	if err != nil || !s.denied {
		return result, err
	}
	return result, lifecycle.RemoveFinalizer(ctx, r.Client, s.request, providerv1.AccessRequestFinalizer)
}

func (r *Reconciler) reconcileDeletion(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s.request, providerv1.AccessRequestFinalizer) {
		return ctrl.Result{}, nil
	}
	s.before = s.request.DeepCopy()
	outcome := pipeline.Run(ctx, s, deletionSteps)
	result, err := r.runner(s).Conclude(ctx, s.request, s.before, outcome)
	if err != nil || !outcome.Finished() {
		return result, err
	}
	r.granted.forget(s.key())
	return ctrl.Result{}, lifecycle.RemoveFinalizer(ctx, r.Client, s.request, providerv1.AccessRequestFinalizer)
}

// runner returns what writes the status of AccessRequests.
func (r *Reconciler) runner(s *scope) pipeline.Runner[*clustersv1.AccessRequest] {
	return pipeline.Runner[*clustersv1.AccessRequest]{
		Client:   r.Client,
		Recorder: r.Recorder,
		Status:   func(request *clustersv1.AccessRequest) *commonapi.Status { return &request.Status.Status },
		Phase:    func(_ *clustersv1.AccessRequest, ready bool) string { return s.phase(ready) },
	}
}

// phase returns the phase of the request. What was granted stays granted while its token works, even if the cluster does
// not answer for a while.
func (s *scope) phase(ready bool) string {
	switch {
	case s.denied:
		return clustersv1.REQUEST_DENIED
	case s.request.DeletionTimestamp != nil:
		return clustersv1.REQUEST_PENDING
	case ready, s.stillGranted():
		return clustersv1.REQUEST_GRANTED
	default:
		return clustersv1.REQUEST_PENDING
	}
}

// stillGranted says whether the request was granted as it is, and its token still works.
func (s *scope) stillGranted() bool {
	return s.before.Status.IsGranted() && s.before.Status.ObservedGeneration == s.request.Generation &&
		s.request.Status.SecretRef != nil && s.target.missing == ""
}

// key returns namespace and name of the request.
func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.request) }
