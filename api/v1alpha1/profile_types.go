// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
)

// Profile is one kind of cluster that the provider offers to OpenControlPlane, as a ClusterProfile.
type Profile struct {
	// Name of the profile in this ProviderConfig.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// ClusterProfileName is the name of the ClusterProfile. The default is
	// "<environment>.<provider>.<ProviderConfig>.<profile>". It is used as a label value: 63 characters at most.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ClusterProfileName string `json:"clusterProfileName,omitempty"`

	// SupportedVersions are the Kubernetes versions of the profile. The default is what the ClusterClass lists in
	// spec.kubernetesVersions.
	// +optional
	// +listType=map
	// +listMapKey=version
	SupportedVersions []clustersv1.SupportedK8sVersion `json:"supportedVersions,omitempty"`

	// Template says how clusters of this profile are made.
	Template ClusterTemplate `json:"template"`
}

// ClusterTemplate says how the clusters of a profile are made.
type ClusterTemplate struct {
	// Topology makes clusters from a ClusterClass.
	Topology TopologyTemplate `json:"topology"`

	// NameMaxLength is the length that the name of a CAPI Cluster may have; a longer one is shortened and ends with a
	// hash. Lower it where the infrastructure allows less, such as 40 for GKE.
	// +optional
	// +kubebuilder:default=63
	// +kubebuilder:validation:Minimum=20
	// +kubebuilder:validation:Maximum=63
	NameMaxLength int32 `json:"nameMaxLength,omitempty"`
}

// TopologyTemplate is the part of a CAPI Cluster's spec.topology that is the same for all clusters of a profile. CAPI's
// own types are used: every field means what it means there.
type TopologyTemplate struct {
	// ClassRef names the ClusterClass. Its namespace is the Cluster's own unless it is given.
	ClassRef clusterv1.ClusterClassRef `json:"classRef"`

	// ControlPlane of the cluster.
	// +optional
	ControlPlane clusterv1.ControlPlaneTopology `json:"controlPlane,omitempty,omitzero"`

	// Workers of the cluster.
	// +optional
	Workers clusterv1.WorkersTopology `json:"workers,omitempty,omitzero"`

	// Variables of the cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	Variables []clusterv1.ClusterVariable `json:"variables,omitempty"`
}
