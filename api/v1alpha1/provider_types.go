// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
)

// ProviderType is a type of CAPI provider.
//
// +kubebuilder:validation:Enum=infrastructure;bootstrap;controlPlane;addon;ipam;runtimeExtension
type ProviderType string

// The types of CAPI providers, as the CAPI Operator tells them apart. CoreType is not legal in spec.providers: the
// core provider has a field of its own.
const (
	// CoreType is the type of CAPI's own core controllers.
	CoreType ProviderType = "core"

	// InfrastructureType is the type of providers that make machines and networks.
	InfrastructureType ProviderType = "infrastructure"

	// BootstrapType is the type of providers that turn machines into nodes.
	BootstrapType ProviderType = "bootstrap"

	// ControlPlaneType is the type of providers that run control planes.
	ControlPlaneType ProviderType = "controlPlane"

	// AddonType is the type of providers that install applications into clusters.
	AddonType ProviderType = "addon"

	// IPAMType is the type of providers that hand out addresses.
	IPAMType ProviderType = "ipam"

	// RuntimeExtensionType is the type of providers that extend what CAPI does.
	RuntimeExtensionType ProviderType = "runtimeExtension"
)

// Provider is one CAPI provider that the CAPI Operator installs.
type Provider struct {
	// Type of the provider.
	Type ProviderType `json:"type"`

	// Name of the provider, as the CAPI Operator and clusterctl know it ("aws", "kubeadm"), or any other name together
	// with fetch.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Version of the provider.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^v[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`
	Version string `json:"version"`

	// Namespace that the provider is installed into. It is created when it does not exist. The default is
	// "<name>-<type>-system", with the type in lower case. It cannot change while the provider is installed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	ProviderOptions `json:",inline"`
}

// CoreProvider is CAPI's core provider, "cluster-api".
type CoreProvider struct {
	// Version of CAPI. The default is the version that this release of the provider was tested with.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^v[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`
	Version string `json:"version,omitempty"`

	// Namespace that the core provider is installed into. The default is "capi-system".
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	ProviderOptions `json:",inline"`
}

// ProviderOptions are the options that all providers have. They become the fields of the CAPI Operator's ProviderSpec.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.featureGates) && has(self.manager) && has(self.manager.featureGates))",message="set either featureGates or manager.featureGates"
// +kubebuilder:validation:XValidation:rule="!has(self.fetch) || [has(self.fetch.oci), has(self.fetch.url), has(self.fetch.selector)].exists_one(x, x)",message="fetch: set exactly one of oci, url and selector"
// +kubebuilder:validation:XValidation:rule="!has(self.fetch) || !has(self.fetch.url) || !self.fetch.url.startsWith('http') || self.fetch.url.startsWith('https://github.com/') || self.fetch.url.startsWith('https://gitlab.')",message="fetch.url: the CAPI Operator fetches from GitHub and GitLab only: use fetch.oci or fetch.selector for any other place"
type ProviderOptions struct {
	// ConfigSecretRef names the Secret with the variables of the provider, such as its credentials. It must exist
	// before the provider is installed.
	// +optional
	ConfigSecretRef *SecretReference `json:"configSecretRef,omitempty"`

	// FeatureGates of the provider's manager. The core provider has ClusterTopology on unless this says otherwise.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// Fetch says where the provider's components come from. The default is what the CAPI Operator knows for the
	// provider's name.
	// +optional
	Fetch *operatorv1.FetchConfiguration `json:"fetch,omitempty"`

	// Manager holds further options of the provider's manager.
	// +optional
	Manager *operatorv1.ManagerSpec `json:"manager,omitempty"`

	// Deployment holds options of the provider's Deployment.
	// +optional
	Deployment *operatorv1.DeploymentSpec `json:"deployment,omitempty"`

	// AdditionalManifests names a ConfigMap with manifests that are applied together with the provider.
	// +optional
	AdditionalManifests *operatorv1.ConfigmapReference `json:"additionalManifests,omitempty"`

	// AdditionalDeployments holds options of further Deployments of the provider, by name.
	// +optional
	AdditionalDeployments map[string]operatorv1.AdditionalDeployments `json:"additionalDeployments,omitempty"`

	// Patches are applied to the provider's manifests.
	// +optional
	Patches []*operatorv1.Patch `json:"patches,omitempty"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the Secret. The default is the namespace of the provider.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}
