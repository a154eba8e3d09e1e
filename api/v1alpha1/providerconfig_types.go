// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
)

// Management says who installs a component.
//
// +kubebuilder:validation:Enum=Managed;External
type Management string

const (
	// Managed means that the provider installs the component, through Flux.
	Managed Management = "Managed"

	// External means that somebody else installs the component. The provider only reads whether it works, and never
	// removes it.
	External Management = "External"
)

// ProviderConfigSpec says which CAPI providers are installed and which kinds of clusters are offered.
type ProviderConfigSpec struct {
	// ProviderRef names the ClusterProvider that this ProviderConfig belongs to. Other instances ignore it. It cannot
	// change.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="providerRef is immutable"
	ProviderRef ProviderReference `json:"providerRef"`

	// Interval is the interval of all Flux objects that the provider makes for this ProviderConfig.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Suspend sets spec.suspend on all Flux objects that the provider makes for this ProviderConfig.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Operator is the CAPI Operator.
	// +optional
	Operator OperatorSpec `json:"operator,omitempty,omitzero"`

	// CertManager is cert-manager, which the CAPI Operator and most CAPI providers need for their webhooks.
	// +optional
	CertManager CertManagerSpec `json:"certManager,omitempty,omitzero"`

	// Core is CAPI's core provider.
	// +optional
	Core CoreProvider `json:"core,omitempty,omitzero"`

	// ProviderSource says where the provider set comes from. The default is the OCI artifact of this very release of
	// the provider.
	// +optional
	ProviderSource *ProviderSource `json:"providerSource,omitempty"`

	// Providers are the CAPI providers that are installed, besides core.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Providers []Provider `json:"providers,omitempty"`

	// ProviderSets are provider sets of the platform owner's own, stored in Git, an OCI registry or a bucket.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	ProviderSets []ProviderSet `json:"providerSets,omitempty"`

	// Profiles are the kinds of clusters that are offered.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Profiles []Profile `json:"profiles,omitempty"`
}

// ProviderReference names a ClusterProvider.
type ProviderReference struct {
	// Name of the ClusterProvider.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// OperatorSpec describes the CAPI Operator.
//
// +kubebuilder:validation:XValidation:rule="!has(self.management) || self.management == 'Managed' || (!has(self.chart) && !has(self.values) && !has(self.valuesFrom))",message="chart, values and valuesFrom only make sense when management is Managed"
type OperatorSpec struct {
	// Management says who installs the CAPI Operator.
	// +optional
	// +kubebuilder:default=Managed
	Management Management `json:"management,omitempty"`

	// Chart is the CAPI Operator's Helm chart. The default is the released chart, in the version that this release of
	// the provider was tested with.
	// +optional
	Chart *Chart `json:"chart,omitempty"`

	// Values are merged over the values that the provider sets.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Values *apiextensionsv1.JSON `json:"values,omitempty"`

	// ValuesFrom are merged below values, as Flux does it.
	// +optional
	ValuesFrom []helmv2.ValuesReference `json:"valuesFrom,omitempty"`
}

// CertManagerSpec describes cert-manager.
//
// +kubebuilder:validation:XValidation:rule="(has(self.management) && self.management == 'Managed') || (!has(self.chart) && !has(self.values) && !has(self.valuesFrom))",message="chart, values and valuesFrom only make sense when management is Managed"
type CertManagerSpec struct {
	// Management says who installs cert-manager.
	// +optional
	// +kubebuilder:default=External
	Management Management `json:"management,omitempty"`

	// Chart is cert-manager's Helm chart. The default is the released chart, in the version that this release of the
	// provider was tested with.
	// +optional
	Chart *Chart `json:"chart,omitempty"`

	// Values are merged over the values that the provider sets.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Values *apiextensionsv1.JSON `json:"values,omitempty"`

	// ValuesFrom are merged below values, as Flux does it.
	// +optional
	ValuesFrom []helmv2.ValuesReference `json:"valuesFrom,omitempty"`
}

// ProviderConfigStatus says what became of a ProviderConfig.
type ProviderConfigStatus struct {
	commonapi.Status `json:",inline"`

	// Providers counts the providers, core among them, that are ready: "2/3".
	// +optional
	Providers string `json:"providers,omitempty"`

	// Components are the parts that this ProviderConfig installs, in the order in which they are installed.
	// +optional
	Components []Component `json:"components,omitempty"`
}

// Component is the state of one part that a ProviderConfig installs.
type Component struct {
	// Name of the component: "cert-manager", "operator", or the name of a CAPI provider or provider set.
	Name string `json:"name"`

	// Type of the component: "certManager", "operator", "core", the type of a CAPI provider, or "providerSet".
	Type string `json:"type"`

	// Version that is asked for.
	// +optional
	Version string `json:"version,omitempty"`

	// InstalledVersion is the version that runs.
	// +optional
	InstalledVersion string `json:"installedVersion,omitempty"`

	// Ready says whether exactly that version is installed and works.
	Ready bool `json:"ready"`

	// Reason is why the component is not ready, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is why the component is not ready.
	// +optional
	Message string `json:"message,omitempty"`

	// Flux is the Flux object that installs the component.
	// +optional
	Flux *FluxReference `json:"flux,omitempty"`
}

// FluxReference names a Flux object.
type FluxReference struct {
	// Kind of the object.
	Kind string `json:"kind"`

	// Name of the object.
	Name string `json:"name"`

	// Namespace of the object.
	Namespace string `json:"namespace"`
}

// ProviderConfig tells one instance of cluster-provider-capi which CAPI providers to install and which kinds of
// clusters to offer.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=openmcp
// +kubebuilder:metadata:labels="openmcp.cloud/cluster=platform"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Providers",type=string,JSONPath=`.status.providers`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a ProviderConfig is used as a label value: 63 characters at most"
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is wanted.
	Spec ProviderConfigSpec `json:"spec"`

	// Status says what became of it.
	// +optional
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// ProviderConfigList is a list of ProviderConfigs.
//
// +kubebuilder:object:root=true
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the ProviderConfigs.
	Items []ProviderConfig `json:"items"`
}
