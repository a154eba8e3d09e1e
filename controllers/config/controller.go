// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/apply"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/lifecycle"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// installSteps are what a ProviderConfig goes through, in this order.
var installSteps = []pipeline.Step[*scope]{
	{Condition: providerv1.AcceptedCondition, Run: accept},                     // resolve and validate, no writes
	{Condition: providerv1.CertManagerReadyCondition, Run: installCertManager}, // or check it
	{Condition: providerv1.OperatorReadyCondition, Run: installOperator},       // until its webhook answers
	{Condition: providerv1.CredentialsReadyCondition, Run: checkCredentials},   // before any provider
	{Condition: providerv1.CoreReadyCondition, Run: installCore},
	{Condition: providerv1.ProvidersReadyCondition, Run: installProviders},
	{Condition: providerv1.ProfilesPublishedCondition, Run: publishProfiles},
}

// uninstallSteps are what a ProviderConfig that is being deleted goes through, in this order.
var uninstallSteps = []pipeline.Step[*scope]{
	{Condition: providerv1.DependentsGoneCondition, Run: awaitDependents},
	{Condition: providerv1.UninstalledCondition, Run: uninstall},
}

// webhookRetry is how long to wait before a webhook that does not answer is asked again: no watch tells when it does.
const webhookRetry = 5 * time.Second

// Reconciler reconciles ProviderConfigs.
type Reconciler struct {
	// Client reads from the cache and writes to the platform cluster.
	Client client.Client

	// Applier applies and deletes the Flux objects and ClusterProfiles.
	Applier *apply.Applier

	// Recorder records events on ProviderConfigs.
	Recorder events.EventRecorder

	// Clock tells the time for Flux's requestedAt annotation.
	Clock clock.PassiveClock

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

	// uncached reads past the cache. It is set by SetupWithManager; Client stands in for it before.
	uncached client.Reader
}

// Reconcile brings the platform cluster closer to what one ProviderConfig asks for.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	config := &providerv1.ProviderConfig{}
	if err := r.Client.Get(ctx, req.NamespacedName, config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if config.Spec.ProviderRef.Name != r.ProviderName {
		return ctrl.Result{}, nil
	}
	operation, err := lifecycle.TakeOperation(ctx, r.Client, config)
	if err != nil || operation == lifecycle.Ignore {
		return ctrl.Result{}, err
	}
	s := &scope{Reconciler: r, config: config, nudge: operation == lifecycle.Reconcile}
	if config.DeletionTimestamp != nil {
		return r.delete(ctx, s)
	}
	if err := lifecycle.AddFinalizer(ctx, r.Client, config, providerv1.ProviderConfigFinalizer); err != nil {
		return ctrl.Result{}, err
	}
	before := config.DeepCopy()
	result := pipeline.Run(ctx, s, installSteps)
	s.report()
	return r.runner().Conclude(ctx, config, before, result)
}

func (r *Reconciler) delete(ctx context.Context, s *scope) (ctrl.Result, error) {
	before := s.config.DeepCopy()
	result := pipeline.Run(ctx, s, uninstallSteps)
	if result.Finished() {
		return ctrl.Result{}, lifecycle.RemoveFinalizer(ctx, r.Client, s.config, providerv1.ProviderConfigFinalizer)
	}
	return r.runner().Conclude(ctx, s.config, before, result)
}

// reader returns what reads past the cache.
func (r *Reconciler) reader() client.Reader {
	if r.uncached == nil {
		return r.Client
	}
	return r.uncached
}

func (r *Reconciler) runner() pipeline.Runner[*providerv1.ProviderConfig] {
	return pipeline.Runner[*providerv1.ProviderConfig]{
		Client:   r.Client,
		Recorder: r.Recorder,
		Status:   func(c *providerv1.ProviderConfig) *commonapi.Status { return &c.Status.Status },
	}
}
