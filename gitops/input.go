// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// Input is all that the emitted objects depend on.
type Input struct {
	// Instance is the name of the ClusterProvider object that this provider runs for.
	Instance string

	// Namespace is the namespace that the provider runs in; Flux objects are put there.
	Namespace string

	// Environment is the name of the OpenControlPlane environment; names of ClusterProfiles start with it.
	Environment string

	// Config is the name of the ProviderConfig; empty when there is none yet, as in a first `init`.
	Config string

	// Release is the release of this provider, for ReleaseAnnotation.
	Release string

	// Spec is the spec of the ProviderConfig.
	Spec providerv1.ProviderConfigSpec

	// Defaults stand in for what the spec leaves out.
	Defaults Defaults
}

// Defaults stand in for the parts of a ProviderConfig's spec that a platform owner leaves out. They are pinned in the
// binary; a platform without access to the internet replaces them with a file (flag --defaults of all commands).
type Defaults struct {
	// Operator replaces an operator chart that is left out.
	Operator providerv1.OperatorSpec `json:"operator,omitempty"`

	// CertManager replaces a cert-manager chart that is left out.
	CertManager providerv1.CertManagerSpec `json:"certManager,omitempty"`

	// Core replaces a core version, and the place that it is fetched from, that are left out.
	Core providerv1.CoreProvider `json:"core,omitempty"`

	// ProviderSource replaces a provider source that is left out.
	ProviderSource *providerv1.ProviderSource `json:"providerSource,omitempty"`
}

// Versions that this release was tested with.
const (
	defaultOperatorVersion    = "0.29.0"
	defaultCertManagerVersion = "v1.21.2"
	defaultCoreVersion        = "v1.14.2"
)

// defaultInterval is the interval of all emitted Flux objects when the ProviderConfig has none.
const defaultInterval = 10 * time.Minute

// DefaultDefaults returns the defaults that are pinned in this release, whose version is release ("v0.1.0").
func DefaultDefaults(release string) Defaults {
	return Defaults{
		Operator: providerv1.OperatorSpec{Chart: &providerv1.Chart{
			Helm:    &sourcev1.HelmRepositorySpec{URL: "https://kubernetes-sigs.github.io/cluster-api-operator"},
			Version: defaultOperatorVersion,
		}},
		CertManager: providerv1.CertManagerSpec{Chart: &providerv1.Chart{
			Helm:    &sourcev1.HelmRepositorySpec{URL: "https://charts.jetstack.io"},
			Version: defaultCertManagerVersion,
		}},
		Core: providerv1.CoreProvider{Version: defaultCoreVersion},
		ProviderSource: &providerv1.ProviderSource{OCI: &sourcev1.OCIRepositorySpec{
			URL:       "oci://ghcr.io/openmcp-project/cluster-provider-capi/sets",
			Reference: &sourcev1.OCIRepositoryRef{Tag: release},
		}},
	}
}

// Complete returns the spec with everything that is left out filled in from the defaults.
func (d Defaults) Complete(spec providerv1.ProviderConfigSpec) providerv1.ProviderConfigSpec {
	out := *spec.DeepCopy()
	if out.Operator.Management == "" {
		out.Operator.Management = providerv1.Managed
	}
	if out.CertManager.Management == "" {
		out.CertManager.Management = providerv1.External
	}
	out.Operator.Chart = completeChart(out.Operator.Chart, d.Operator.Chart)
	out.CertManager.Chart = completeChart(out.CertManager.Chart, d.CertManager.Chart)
	if out.Core.Version == "" {
		out.Core.Version = d.Core.Version
	}
	if out.Core.Fetch == nil && out.Core.Version == d.Core.Version {
		out.Core.Fetch = d.Core.Fetch.DeepCopy()
	}
	if out.Core.FeatureGates == nil && (out.Core.Manager == nil || out.Core.Manager.FeatureGates == nil) {
		out.Core.FeatureGates = map[string]bool{"ClusterTopology": true}
	}
	if out.ProviderSource == nil {
		out.ProviderSource = d.ProviderSource.DeepCopy()
	}
	return out
}

// completeChart returns chart, or the default when there is none, or chart with the default's version when it is the
// same kind of source and has none.
func completeChart(chart, byDefault *providerv1.Chart) *providerv1.Chart {
	if chart == nil {
		return byDefault.DeepCopy()
	}
	if byDefault != nil && chart.Version == "" && chart.Git == nil && (chart.OCI == nil || chart.OCI.Reference == nil) {
		chart.Version = byDefault.Version
	}
	return chart
}

// interval returns the interval of all Flux objects.
func (in Input) interval() time.Duration {
	if in.Spec.Interval == nil {
		return defaultInterval
	}
	return in.Spec.Interval.Duration
}
