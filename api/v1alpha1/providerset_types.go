// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProviderSet is a folder of the platform owner's own manifests with provider objects of the CAPI Operator, and whatever
// these need. Flux applies it; its fields mean what they mean in a Flux Kustomization.
type ProviderSet struct {
	// Name of the provider set in this ProviderConfig.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// SourceRef names the Flux source that the manifests are in.
	SourceRef SourceReference `json:"sourceRef"`

	// Path is the folder of the manifests in the source. The default is the root.
	// +optional
	// +kubebuilder:validation:Pattern=`^\./`
	Path string `json:"path,omitempty"`

	// Substitute are variables and their values, which Flux puts in the place of ${NAME} in the manifests.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[_A-Za-z][_A-Za-z0-9]*$'))",message="the name of a variable has letters, digits and _ only, and does not begin with a digit"
	Substitute map[string]string `json:"substitute,omitempty"`

	// SubstituteFrom are ConfigMaps and Secrets, in the namespace of the provider, with more of such variables.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	SubstituteFrom []kustomizev1.SubstituteReference `json:"substituteFrom,omitempty"`

	// Decryption says how Flux decrypts Secrets among the manifests.
	// +optional
	Decryption *kustomizev1.Decryption `json:"decryption,omitempty"`

	// ServiceAccountName is the ServiceAccount, in the namespace of the provider, that Flux applies the manifests as.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// DependsOn are Flux Kustomizations that must be ready before this provider set is applied, besides the one of the
	// core provider.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	DependsOn []kustomizev1.DependencyReference `json:"dependsOn,omitempty"`

	// Timeout is how long Flux waits for the provider set to become healthy before it reports that and tries again. The
	// default is 2m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}
