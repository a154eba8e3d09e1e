// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// SetPrefix begins the component names of provider sets.
const SetPrefix = "set-"

// setPart returns the part of a bundle that is a provider set: one Kustomization, which is healthy when every provider
// object among the manifests is, in the version that it asks for.
func (in Input) setPart(set providerv1.ProviderSet) Part {
	component := SetPrefix + set.Name
	timeout := set.Timeout
	if timeout == nil {
		timeout = duration(providerTimeout)
	}
	path := set.Path
	if path == "" {
		path = "./"
	}
	obj := &kustomizev1.Kustomization{
		TypeMeta:   typeMeta(kustomizev1.GroupVersion.String(), kustomizev1.KustomizationKind),
		ObjectMeta: in.meta(component),
		Spec: kustomizev1.KustomizationSpec{
			CommonMetadata: &kustomizev1.CommonMetadata{Labels: in.labels(component)},
			Interval:       *duration(in.interval()),
			RetryInterval:  duration(providerRetry),
			Timeout:        timeout,
			Suspend:        in.Spec.Suspend,
			SourceRef: kustomizev1.CrossNamespaceSourceReference{
				Kind: set.SourceRef.Kind, Name: set.SourceRef.Name, Namespace: set.SourceRef.Namespace,
			},
			Path:               path,
			Prune:              true,
			Wait:               true,
			Decryption:         set.Decryption.DeepCopy(),
			ServiceAccountName: set.ServiceAccountName,
			DependsOn:          append([]kustomizev1.DependencyReference{{Name: in.name(Core)}}, set.DependsOn...),
		},
	}
	if len(set.Substitute) > 0 || len(set.SubstituteFrom) > 0 {
		obj.Spec.PostBuild = &kustomizev1.PostBuild{Substitute: set.Substitute, SubstituteFrom: set.SubstituteFrom}
	}
	for _, kind := range ProviderTypes()[1:] {
		obj.Spec.HealthCheckExprs = append(obj.Spec.HealthCheckExprs, healthCheck(kind))
	}
	return Part{
		Component: component, Name: set.Name, Type: "providerSet", Installer: obj, Objects: []client.Object{obj},
	}
}

// healthCheck returns how Flux is to read the health of a kind of provider objects.
func healthCheck(kind providerv1.ProviderType) kustomize.CustomHealthCheck {
	return kustomize.CustomHealthCheck{
		APIVersion: operatorv1.GroupVersion.String(),
		Kind:       objectKind(kind),
		HealthCheckExpressions: kustomize.HealthCheckExpressions{
			InProgress: providerInProgress, Failed: providerFailed, Current: providerCurrent,
		},
	}
}
