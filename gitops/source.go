// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// chartMediaType is the media type of the layer of an OCI artifact that holds a Helm chart.
const chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// chartSource returns the Flux source of a component's chart.
func (in Input) chartSource(component string, chart *providerv1.Chart) client.Object {
	switch {
	case chart.OCI != nil:
		return in.chartOCI(component, chart)
	case chart.Git != nil:
		return in.gitRepository(component, chart.Git)
	default:
		obj := &sourcev1.HelmRepository{
			TypeMeta:   typeMeta(sourcev1.GroupVersion.String(), sourcev1.HelmRepositoryKind),
			ObjectMeta: in.meta(component),
			Spec:       *chart.Helm.DeepCopy(),
		}
		in.settle(&obj.Spec.Interval, &obj.Spec.Suspend)
		return obj
	}
}

// chartOCI returns the OCIRepository of a chart, which Flux reads as a chart when the layer is copied as it is.
func (in Input) chartOCI(component string, chart *providerv1.Chart) client.Object {
	obj := in.ociRepository(component, chart.OCI)
	if obj.Spec.Reference == nil && chart.Version != "" {
		obj.Spec.Reference = &sourcev1.OCIRepositoryRef{}
		if isExactVersion(chart.Version) {
			obj.Spec.Reference.Tag = chart.Version
		} else {
			obj.Spec.Reference.SemVer = chart.Version
		}
	}
	if obj.Spec.LayerSelector == nil {
		obj.Spec.LayerSelector = &sourcev1.OCILayerSelector{MediaType: chartMediaType, Operation: sourcev1.OCILayerCopy}
	}
	return obj
}

// providerSetSource returns the Flux source of the provider set, or nil when the platform owner brings one.
func (in Input) providerSetSource(source *providerv1.ProviderSource) client.Object {
	switch {
	case source.OCI != nil:
		return in.ociRepository(ProviderSet, source.OCI)
	case source.Git != nil:
		return in.gitRepository(ProviderSet, source.Git)
	case source.Bucket != nil:
		obj := &sourcev1.Bucket{
			TypeMeta:   typeMeta(sourcev1.GroupVersion.String(), sourcev1.BucketKind),
			ObjectMeta: in.meta(ProviderSet),
			Spec:       *source.Bucket.DeepCopy(),
		}
		in.settle(&obj.Spec.Interval, &obj.Spec.Suspend)
		return obj
	default:
		return nil
	}
}

func (in Input) ociRepository(component string, spec *sourcev1.OCIRepositorySpec) *sourcev1.OCIRepository {
	obj := &sourcev1.OCIRepository{
		TypeMeta:   typeMeta(sourcev1.GroupVersion.String(), sourcev1.OCIRepositoryKind),
		ObjectMeta: in.meta(component),
		Spec:       *spec.DeepCopy(),
	}
	in.settle(&obj.Spec.Interval, &obj.Spec.Suspend)
	return obj
}

func (in Input) gitRepository(component string, spec *sourcev1.GitRepositorySpec) *sourcev1.GitRepository {
	obj := &sourcev1.GitRepository{
		TypeMeta:   typeMeta(sourcev1.GroupVersion.String(), sourcev1.GitRepositoryKind),
		ObjectMeta: in.meta(component),
		Spec:       *spec.DeepCopy(),
	}
	in.settle(&obj.Spec.Interval, &obj.Spec.Suspend)
	return obj
}

// settle fills in the interval of a source and suspends it with the ProviderConfig.
func (in Input) settle(interval *metav1.Duration, suspend *bool) {
	if interval.Duration == 0 {
		interval.Duration = in.interval()
	}
	*suspend = *suspend || in.Spec.Suspend
}

// isExactVersion says whether a chart version is one version and not a constraint.
func isExactVersion(version string) bool {
	return !strings.ContainsAny(version, "<>=~^*, |") && !strings.HasSuffix(version, ".x") && strings.Count(version, ".") >= 2
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func duration(d time.Duration) *metav1.Duration {
	return &metav1.Duration{Duration: d}
}
