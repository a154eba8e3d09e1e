// SPDX-License-Identifier: Apache-2.0

package v1alpha1

const (
	// ProviderName is the name of this provider: of its binary and of its field manager.
	ProviderName = "cluster-provider-capi"

	// FieldManager is the field manager of every object that the provider applies.
	FieldManager = ProviderName
)

// Labels of the objects that the provider makes. Its own garbage collection only looks at objects that carry
// ManagedByLabel with its own instance name and, for what a ProviderConfig installs, ProviderConfigLabel too.
const (
	// ManagedByLabel holds the name of the instance, that is of the ClusterProvider object, which made an object.
	ManagedByLabel = "openmcp.cloud/managed-by"

	// ManagedPurposeLabel says what an object is for: its value is the name of the component for Flux objects,
	// "cluster-profile", "cluster" or "access".
	ManagedPurposeLabel = "openmcp.cloud/managed-purpose"

	// ProviderConfigLabel holds the name of the ProviderConfig that an object belongs to.
	ProviderConfigLabel = GroupName + "/provider-config"

	// ComponentLabel holds the name of the component that an object belongs to: "cert-manager", "operator",
	// "provider-set", "core", or the type and the name of a provider, such as "infrastructure-aws".
	ComponentLabel = GroupName + "/component"

	// ProfileLabel holds the name, in its ProviderConfig, of the profile that a ClusterProfile was made from.
	ProfileLabel = GroupName + "/profile"

	// ClusterNameLabel holds the name of the OpenControlPlane Cluster that a CAPI Cluster was made from, or a hash of
	// it when it is too long for a label. Such a CAPI Cluster lives in the namespace of the Cluster.
	ClusterNameLabel = GroupName + "/cluster-name"

	// AccessRequestNameLabel holds the name, or a hash of it when it is too long for a label, of the AccessRequest
	// that an object in a workload cluster was made for.
	AccessRequestNameLabel = GroupName + "/accessrequest-name"

	// AccessRequestNamespaceLabel holds the namespace of the AccessRequest that an object in a workload cluster was
	// made for.
	AccessRequestNamespaceLabel = GroupName + "/accessrequest-namespace"
)

// Annotations of the objects that the provider makes.
const (
	// ClusterNameAnnotation holds the full name of the OpenControlPlane Cluster that a CAPI Cluster was made from.
	ClusterNameAnnotation = GroupName + "/cluster-name"

	// ReleaseAnnotation holds, on the Flux objects that an `init` applies, the release of the provider that did so. The
	// controllers of another release leave them alone: while a new release prepares the platform, the old one still
	// runs.
	ReleaseAnnotation = GroupName + "/release"
)

// Finalizers that the provider sets.
const (
	// ProviderConfigFinalizer keeps a ProviderConfig until all that it installed is gone.
	ProviderConfigFinalizer = GroupName + "/providerconfig"

	// ClusterFinalizer keeps an OpenControlPlane Cluster until its CAPI Cluster is gone.
	ClusterFinalizer = GroupName + "/cluster"

	// AccessRequestFinalizer keeps an AccessRequest until what it granted is taken back.
	AccessRequestFinalizer = GroupName + "/accessrequest"
)
