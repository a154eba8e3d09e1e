// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
)

// missingRetry is how long to wait before kinds that are not served are looked for again. A watch on their CRDs is
// faster, but a CRD appears some time before its kind is served.
const missingRetry = 15 * time.Second

// probeName is the name of the objects that webhooks are tried with, in dry runs.
const probeName = "cluster-provider-capi-probe"

// fluxKinds are the kinds of Flux without which nothing can be installed.
var fluxKinds = []schema.GroupVersionKind{
	sourcev1.GroupVersion.WithKind(sourcev1.OCIRepositoryKind),
	sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind),
	sourcev1.GroupVersion.WithKind(sourcev1.HelmRepositoryKind),
	sourcev1.GroupVersion.WithKind(sourcev1.BucketKind),
	kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind),
	helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind),
}

// issuerKind and certificateKind are kinds of cert-manager, which brings no API package that is light enough.
var (
	issuerKind      = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Issuer"}
	certificateKind = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}
	providerKind    = operatorv1.GroupVersion.WithKind("InfrastructureProvider")
)

// missingKind returns the first of the kinds that the platform cluster does not serve, or nil.
func (s *scope) missingKind(kinds ...schema.GroupVersionKind) (*schema.GroupVersionKind, error) {
	for _, kind := range kinds {
		_, err := s.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if apimeta.IsNoMatchError(err) {
			return &kind, nil
		}
		if err != nil {
			return nil, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("look for kind %s: %w", kind.Kind, err))
		}
	}
	return nil, nil
}

// checkFlux looks whether Flux is installed.
func (s *scope) checkFlux() (pipeline.Outcome, error) {
	missing, err := s.missingKind(fluxKinds...)
	if err != nil {
		return pipeline.Outcome{}, err
	}
	if missing != nil {
		return pipeline.Wait(providerv1.ReasonFluxMissing, fmt.Sprintf(
			"the platform cluster does not serve %s (%s), a kind of Flux: install Flux 2.7 or later with its source, kustomize and helm "+
				"controllers", missing.Kind, missing.GroupVersion()), missingRetry), nil
	}
	return pipeline.Done("Flux is installed"), nil
}

// checkCertManager looks whether cert-manager works: its kinds are served, and its webhook answers.
func (s *scope) checkCertManager(ctx context.Context) (pipeline.Outcome, error) {
	missing, err := s.missingKind(certificateKind, issuerKind)
	if err != nil {
		return pipeline.Outcome{}, err
	}
	if missing != nil {
		return pipeline.Wait(providerv1.ReasonCertManagerMissing, fmt.Sprintf(
			"the platform cluster does not serve %s (%s): install cert-manager, or set spec.certManager.management to Managed",
			missing.Kind, missing.GroupVersion()), missingRetry), nil
	}
	if s.isTrue(providerv1.CertManagerReadyCondition) {
		return pipeline.Done("cert-manager answers"), nil
	}
	issuer := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selfSigned": map[string]any{}}}}
	issuer.SetGroupVersionKind(issuerKind)
	if err := s.probe(ctx, issuer); err != nil {
		return pipeline.Wait(providerv1.ReasonCertManagerNotReady, "cert-manager does not answer yet: "+err.Error(), webhookRetry), nil
	}
	return pipeline.Done("cert-manager answers"), nil
}

// checkOperator looks whether the CAPI Operator works: its kinds are served, and its webhook answers.
func (s *scope) checkOperator(ctx context.Context) (pipeline.Outcome, error) {
	missing, err := s.missingKind(providerKind)
	if err != nil {
		return pipeline.Outcome{}, err
	}
	if missing != nil {
		return pipeline.Wait(providerv1.ReasonOperatorMissing, fmt.Sprintf(
			"the platform cluster does not serve %s (%s): install the CAPI Operator, or set spec.operator.management to Managed",
			missing.Kind, missing.GroupVersion()), missingRetry), nil
	}
	if s.isTrue(providerv1.OperatorReadyCondition) {
		return pipeline.Done("the CAPI Operator answers"), nil
	}
	if err := s.probe(ctx, &operatorv1.InfrastructureProvider{}); err != nil {
		return pipeline.Wait(providerv1.ReasonWebhookNotReady, "the CAPI Operator does not answer yet: "+err.Error(), webhookRetry), nil
	}
	return pipeline.Done("the CAPI Operator answers"), nil
}

// probe creates an object in a dry run, which asks all webhooks of its kind.
func (s *scope) probe(ctx context.Context, obj client.Object) error {
	obj.SetName(probeName)
	obj.SetNamespace(s.Namespace)
	return s.Client.Create(ctx, obj, client.DryRunAll, client.FieldOwner(providerv1.FieldManager))
}

// isTrue says whether the ProviderConfig has a condition that is True.
func (s *scope) isTrue(condition string) bool {
	return apimeta.IsStatusConditionTrue(s.config.Status.Conditions, condition)
}
