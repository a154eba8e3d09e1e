// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Finalizer keeps a LocalControlPlane until its processes and data are gone.
const Finalizer = "controlplane.cluster.x-k8s.io/local"

// The conditions of a LocalControlPlane, besides Paused.
const (
	// AvailableCondition is True while the API server answers.
	AvailableCondition = "Available"
	// RollingOutCondition is True while the version changes.
	RollingOutCondition = clusterv1.RollingOutCondition
)

// Logging is how much the API server logs.
// +kubebuilder:validation:Enum=Normal;Verbose
type Logging string

// The values of Logging.
const (
	LoggingNormal  Logging = "Normal"
	LoggingVerbose Logging = "Verbose"
)

// LocalControlPlaneSpec is what a LocalControlPlane should be.
type LocalControlPlaneSpec struct {
	// Version of Kubernetes. It is only reported, after a restart of the API server: the binary is always the same.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version"`

	LocalControlPlaneConfig `json:",inline"`
}

// LocalControlPlaneConfig is the part of the spec that a template may set.
type LocalControlPlaneConfig struct {
	// AuthenticationConfig is an AuthenticationConfiguration of the API server, as YAML, for users of an OpenID Connect
	// issuer for example. The certificates of the kubeconfig Secret work with and without it.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	AuthenticationConfig string `json:"authenticationConfig,omitempty"`

	// Logging is how much the API server logs: Normal, unless set.
	// +optional
	Logging Logging `json:"logging,omitempty"`
}

// LocalControlPlaneStatus is what a LocalControlPlane is.
type LocalControlPlaneStatus struct {
	// Initialization tells Cluster API how far the first provisioning is.
	// +optional
	Initialization LocalControlPlaneInitializationStatus `json:"initialization,omitempty,omitzero"`

	// ExternalManagedControlPlane is true: no Node stands for this control plane.
	// +optional
	ExternalManagedControlPlane *bool `json:"externalManagedControlPlane,omitempty"`

	// Version that runs.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// Versions that run: never more than one.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Versions []clusterv1.StatusVersion `json:"versions,omitempty"`

	// Conditions of the LocalControlPlane: Available, RollingOut and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation that was last looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// LocalControlPlaneInitializationStatus is part of the contract with Cluster API.
// +kubebuilder:validation:MinProperties=1
type LocalControlPlaneInitializationStatus struct {
	// ControlPlaneInitialized is true once the API server has answered; it never changes back.
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// LocalControlPlane is an etcd, an API server and a controller manager that run as processes of this machine.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=localcontrolplanes,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LocalControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   LocalControlPlaneSpec   `json:"spec,omitempty"`
	Status LocalControlPlaneStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions.
func (c *LocalControlPlane) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *LocalControlPlane) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// LocalControlPlaneList is a list of LocalControlPlanes.
// +kubebuilder:object:root=true
type LocalControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalControlPlane `json:"items"`
}

// LocalControlPlaneTemplateSpec has the template.
type LocalControlPlaneTemplateSpec struct {
	// Template has their metadata and spec.
	Template LocalControlPlaneTemplateResource `json:"template"`
}

// LocalControlPlaneTemplateResource is what LocalControlPlanes are made from.
type LocalControlPlaneTemplateResource struct {
	// ObjectMeta has labels and annotations.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec is the same in all of them.
	// +optional
	Spec LocalControlPlaneConfig `json:"spec,omitempty"`
}

// LocalControlPlaneTemplate is what the LocalControlPlanes of a ClusterClass are made from.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localcontrolplanetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
type LocalControlPlaneTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LocalControlPlaneTemplateSpec `json:"spec,omitempty"`
}

// LocalControlPlaneTemplateList is a list of LocalControlPlaneTemplates.
// +kubebuilder:object:root=true
type LocalControlPlaneTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalControlPlaneTemplate `json:"items"`
}
