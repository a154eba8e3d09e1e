// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// LocalClusterSpec is what a LocalCluster should be.
type LocalClusterSpec struct {
	// ControlPlaneEndpoint is where the cluster's API server listens. It is chosen once, on the loopback address, when it
	// is not set.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`
}

// LocalClusterStatus is what a LocalCluster is.
type LocalClusterStatus struct {
	// Initialization tells Cluster API how far the first provisioning is.
	// +optional
	Initialization LocalClusterInitializationStatus `json:"initialization,omitempty,omitzero"`

	// Conditions of the LocalCluster: Ready and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation that was last looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// LocalClusterInitializationStatus is part of the contract with Cluster API.
// +kubebuilder:validation:MinProperties=1
type LocalClusterInitializationStatus struct {
	// Provisioned is true once the endpoint is chosen; it never changes back.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// LocalCluster is the infrastructure of a cluster that runs as processes of this machine: its endpoint.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=localclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Port",type=integer,JSONPath=`.spec.controlPlaneEndpoint.port`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LocalCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   LocalClusterSpec   `json:"spec,omitempty"`
	Status LocalClusterStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions.
func (c *LocalCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *LocalCluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// LocalClusterList is a list of LocalClusters.
// +kubebuilder:object:root=true
type LocalClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalCluster `json:"items"`
}

// LocalClusterTemplateSpec has the template.
type LocalClusterTemplateSpec struct {
	// Template has their metadata and spec.
	Template LocalClusterTemplateResource `json:"template"`
}

// LocalClusterTemplateResource is what LocalClusters are made from.
type LocalClusterTemplateResource struct {
	// ObjectMeta has labels and annotations.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec is the same in all of them.
	// +optional
	Spec LocalClusterSpec `json:"spec,omitempty"`
}

// LocalClusterTemplate is what the LocalClusters of a ClusterClass are made from.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
type LocalClusterTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LocalClusterTemplateSpec `json:"spec,omitempty"`
}

// LocalClusterTemplateList is a list of LocalClusterTemplates.
// +kubebuilder:object:root=true
type LocalClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalClusterTemplate `json:"items"`
}
