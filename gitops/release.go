// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"fmt"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// releaseRetry is how long Flux waits before it tries a failed install or upgrade again.
const releaseRetry = 30 * time.Second

// operatorValues are the values of the CAPI Operator's chart that the provider depends on. Providers are never given
// to the chart: its hooks delete and re-create their namespaces at each upgrade.
type operatorValues struct {
	// WatchConfigSecret makes the operator roll out changed credentials.
	WatchConfigSecret bool `json:"watchConfigSecret"`
	// WatchConfigMap makes the operator notice components that appear in a ConfigMap.
	WatchConfigMap bool `json:"watchConfigMap"`
}

// certManagerValues are the values of cert-manager's chart that the provider depends on.
type certManagerValues struct {
	CRDs certManagerCRDs `json:"crds"`
}

type certManagerCRDs struct {
	Enabled bool `json:"enabled"`
	Keep    bool `json:"keep"`
}

// release is what the HelmReleases of all components differ in.
type release struct {
	component  string
	name       string
	namespace  string
	chartName  string
	chart      *providerv1.Chart
	ours       any
	values     *apiextensionsv1.JSON
	valuesFrom []helmv2.ValuesReference
	dependsOn  []helmv2.DependencyReference
}

// operatorRelease describes the CAPI Operator's HelmRelease.
func (in Input) operatorRelease() release {
	r := release{
		component: Operator, name: "capi-operator", chartName: "cluster-api-operator", chart: in.Spec.Operator.Chart,
		ours:   operatorValues{WatchConfigSecret: true, WatchConfigMap: true},
		values: in.Spec.Operator.Values, valuesFrom: in.Spec.Operator.ValuesFrom,
	}
	if in.Spec.CertManager.Management == providerv1.Managed {
		r.dependsOn = []helmv2.DependencyReference{{Name: in.name(CertManager)}}
	}
	return r
}

// certManagerRelease describes cert-manager's HelmRelease.
func (in Input) certManagerRelease() release {
	return release{
		component: CertManager, name: "cert-manager", namespace: "cert-manager", chartName: "cert-manager",
		chart: in.Spec.CertManager.Chart,
		ours:  certManagerValues{CRDs: certManagerCRDs{Enabled: true, Keep: true}},

		values: in.Spec.CertManager.Values, valuesFrom: in.Spec.CertManager.ValuesFrom,
	}
}

// helmRelease returns the HelmRelease of a component. A failed install or upgrade is tried again and never rolled back
// or uninstalled: both would take running providers away.
func (in Input) helmRelease(r release) (*helmv2.HelmRelease, error) {
	values, err := mergeValues(r.ours, r.values)
	if err != nil {
		return nil, fmt.Errorf("values of %s: %w", r.component, err)
	}
	obj := &helmv2.HelmRelease{
		TypeMeta:   typeMeta(helmv2.GroupVersion.String(), helmv2.HelmReleaseKind),
		ObjectMeta: in.meta(r.component),
		Spec: helmv2.HelmReleaseSpec{
			Interval:        *duration(in.interval()),
			Suspend:         in.Spec.Suspend,
			ReleaseName:     r.name,
			TargetNamespace: r.namespace,
			DependsOn:       r.dependsOn,
			DriftDetection:  &helmv2.DriftDetection{Mode: helmv2.DriftDetectionEnabled},
			Install: &helmv2.Install{
				CRDs:            helmv2.CreateReplace,
				CreateNamespace: r.namespace != "",
				Strategy:        &helmv2.InstallStrategy{Name: string(helmv2.ActionStrategyRetryOnFailure), RetryInterval: duration(releaseRetry)},
			},
			Upgrade: &helmv2.Upgrade{
				CRDs:     helmv2.CreateReplace,
				Strategy: &helmv2.UpgradeStrategy{Name: string(helmv2.ActionStrategyRetryOnFailure), RetryInterval: duration(releaseRetry)},
			},
			ValuesFrom: r.valuesFrom,
			Values:     values,
		},
	}
	in.setChart(obj, r)
	return obj, nil
}

// setChart points a HelmRelease at its chart.
func (in Input) setChart(obj *helmv2.HelmRelease, r release) {
	if r.chart.OCI != nil {
		obj.Spec.ChartRef = &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: in.name(r.component)}
		return
	}
	kind, name := "HelmRepository", r.chartName
	if r.chart.Git != nil {
		kind, name = "GitRepository", "./"
	}
	if r.chart.ChartName != "" {
		name = r.chart.ChartName
	}
	obj.Spec.Chart = &helmv2.HelmChartTemplate{Spec: helmv2.HelmChartTemplateSpec{
		Chart:     name,
		Version:   r.chart.Version,
		SourceRef: helmv2.CrossNamespaceObjectReference{Kind: kind, Name: in.name(r.component)},
	}}
}

// mergeValues returns our values with the platform owner's merged over them, as Helm does it: null removes a value.
func mergeValues(ours any, theirs *apiextensionsv1.JSON) (*apiextensionsv1.JSON, error) {
	raw, err := json.Marshal(ours)
	if err != nil {
		return nil, err
	}
	if theirs != nil && len(theirs.Raw) > 0 {
		if raw, err = jsonpatch.MergePatch(raw, theirs.Raw); err != nil {
			return nil, err
		}
	}
	return &apiextensionsv1.JSON{Raw: raw}, nil
}

// releasePart returns the part of a bundle that is installed as a Helm chart.
func (in Input) releasePart(r release, kind string) (Part, error) {
	obj, err := in.helmRelease(r)
	if err != nil {
		return Part{}, err
	}
	source := in.chartSource(r.component, r.chart)
	return Part{
		Component: r.component, Name: r.component, Type: kind, Version: chartVersion(r.chart),
		Source: source, Installer: obj, Objects: []client.Object{source, obj},
	}, nil
}

// chartVersion returns the version of a chart that is asked for, as far as the spec tells.
func chartVersion(chart *providerv1.Chart) string {
	if chart.OCI != nil && chart.OCI.Reference != nil {
		return chart.OCI.Reference.Tag + chart.OCI.Reference.SemVer
	}
	return chart.Version
}
