// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// Chart says where a Helm chart comes from. Exactly one of helm, oci and git is set; each takes the spec of the Flux
// source of that kind. An interval that is left out there is the interval of the ProviderConfig.
//
// +kubebuilder:validation:XValidation:rule="[has(self.helm), has(self.oci), has(self.git)].exists_one(x, x)",message="set exactly one of helm, oci and git"
// +kubebuilder:validation:XValidation:rule="!(has(self.git) && has(self.version))",message="version is taken from the chart in Git: leave it out, or pin the Git reference"
// +kubebuilder:validation:XValidation:rule="!(has(self.oci) && has(self.oci.ref) && has(self.version))",message="set either oci.ref or version"
type Chart struct {
	// Helm is a Helm repository.
	// +optional
	Helm *sourcev1.HelmRepositorySpec `json:"helm,omitempty"`

	// OCI is a chart in an OCI registry.
	// +optional
	OCI *sourcev1.OCIRepositorySpec `json:"oci,omitempty"`

	// Git is a repository that holds the chart.
	// +optional
	Git *sourcev1.GitRepositorySpec `json:"git,omitempty"`

	// ChartName is the name of the chart in a Helm repository, or its path in a Git repository. The default is the
	// chart's usual name. It has no meaning for an OCI source.
	// +optional
	// +kubebuilder:validation:MinLength=1
	ChartName string `json:"chartName,omitempty"`

	// Version is the version of the chart: an exact one ("0.29.0") or a constraint ("0.29.x"). The default is the
	// version that this release of the provider was tested with.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Version string `json:"version,omitempty"`
}

// ProviderSource says where the provider set comes from: the kustomize bases that Flux applies for each provider.
//
// +kubebuilder:validation:XValidation:rule="[has(self.oci), has(self.git), has(self.bucket), has(self.sourceRef)].exists_one(x, x)",message="set exactly one of oci, git, bucket and sourceRef"
type ProviderSource struct {
	// OCI is a Flux OCI artifact.
	// +optional
	OCI *sourcev1.OCIRepositorySpec `json:"oci,omitempty"`

	// Git is a Git repository.
	// +optional
	Git *sourcev1.GitRepositorySpec `json:"git,omitempty"`

	// Bucket is an object store.
	// +optional
	Bucket *sourcev1.BucketSpec `json:"bucket,omitempty"`

	// SourceRef names a Flux source that exists already.
	// +optional
	SourceRef *SourceReference `json:"sourceRef,omitempty"`

	// Path is the folder of the provider set in the source. The default is the root.
	// +optional
	// +kubebuilder:validation:Pattern=`^\./`
	Path string `json:"path,omitempty"`
}

// SourceReference names a Flux source.
type SourceReference struct {
	// Kind of the source.
	// +kubebuilder:validation:Enum=OCIRepository;GitRepository;Bucket;ExternalArtifact
	Kind string `json:"kind"`

	// Name of the source.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the source. The default is the namespace that the provider runs in. Another one works unless Flux
	// runs with --no-cross-namespace-refs.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}
