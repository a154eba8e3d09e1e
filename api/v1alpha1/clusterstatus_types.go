// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ClusterStatus is what this provider puts into status.providerStatus of an OpenControlPlane Cluster.
type ClusterStatus struct {
	// ClusterName is the name of the CAPI Cluster. It is chosen once and never changes.
	ClusterName string `json:"clusterName"`

	// Namespace of the CAPI Cluster: that of the Cluster.
	Namespace string `json:"namespace"`

	// ProviderConfig is the name of the ProviderConfig that the Cluster was made from.
	ProviderConfig string `json:"providerConfig,omitempty"`

	// Profile is the name, in that ProviderConfig, of the profile that the Cluster was made from.
	Profile string `json:"profile,omitempty"`

	// Version is the Kubernetes version that was asked of CAPI last.
	Version string `json:"version,omitempty"`
}
