// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReadyCondition is the summary of all other conditions, on every kind: True when all of them are, else it has the reason
// of the first one that is not.
const ReadyCondition = "Ready"

// Conditions of a ProviderConfig, in the order in which they are worked on.
const (
	// AcceptedCondition says that the object is understood and that what it refers to exists. It is the first condition
	// of a ProviderConfig and of a Cluster.
	AcceptedCondition = "Accepted"

	// CertManagerReadyCondition says that cert-manager serves its API.
	CertManagerReadyCondition = "CertManagerReady"

	// OperatorReadyCondition says that the CAPI Operator is installed and answers.
	OperatorReadyCondition = "OperatorReady"

	// CoreReadyCondition says that CAPI's core provider is installed in the wanted version and healthy.
	CoreReadyCondition = "CoreReady"

	// CredentialsReadyCondition says that the config Secrets of all providers exist.
	CredentialsReadyCondition = "CredentialsReady"

	// ProvidersReadyCondition says, on a ProviderConfig, that all its providers are installed in the wanted version and
	// healthy; on a Cluster, that those of its ProviderConfig are.
	ProvidersReadyCondition = "ProvidersReady"

	// ProfilesPublishedCondition says that there is a ClusterProfile for each profile.
	ProfilesPublishedCondition = "ProfilesPublished"

	// DependentsGoneCondition says, on a ProviderConfig that is being deleted, that nothing uses it any more.
	DependentsGoneCondition = "DependentsGone"

	// UninstalledCondition says, on a ProviderConfig that is being deleted, that all it installed is gone.
	UninstalledCondition = "Uninstalled"
)

// Conditions of a Cluster, besides those that it shares with a ProviderConfig.
const (
	// TemplateAppliedCondition says that the CAPI Cluster is as the profile says.
	TemplateAppliedCondition = "TemplateApplied"

	// ClusterAvailableCondition says that CAPI reports the cluster as available.
	ClusterAvailableCondition = "ClusterAvailable"

	// EndpointPublishedCondition says that the API server's endpoint is in the status.
	EndpointPublishedCondition = "EndpointPublished"

	// CAPIConditionPrefix precedes the type of each condition that is copied from the CAPI Cluster.
	CAPIConditionPrefix = "CAPI_"

	// ForeignFinalizersGoneCondition says, on a Cluster that is being deleted, that nobody else holds it.
	ForeignFinalizersGoneCondition = "ForeignFinalizersGone"

	// ClusterDeletedCondition says, on a Cluster that is being deleted, that the CAPI Cluster is gone.
	ClusterDeletedCondition = "ClusterDeleted"
)

// Conditions of an AccessRequest.
const (
	// ClusterFoundCondition says that the requested cluster exists and is ours.
	ClusterFoundCondition = "ClusterFound"

	// ClusterReachableCondition says that the cluster's API server answers to its admin kubeconfig.
	ClusterReachableCondition = "ClusterReachable"

	// PermissionsGrantedCondition says that the requested permissions, and no others, are in effect in the cluster.
	PermissionsGrantedCondition = "PermissionsGranted"

	// KubeconfigIssuedCondition says that the Secret with the kubeconfig exists and is valid.
	KubeconfigIssuedCondition = "KubeconfigIssued"

	// PermissionsRevokedCondition says, on an AccessRequest that is being deleted, that nothing is left in the cluster.
	PermissionsRevokedCondition = "PermissionsRevoked"
)

// Reasons that any condition may have.
const (
	// ReasonPending: the step has not been reached yet.
	ReasonPending = "Pending"

	// ReasonSucceeded: the step is done.
	ReasonSucceeded = "Succeeded"

	// ReasonReady: the object or part is ready.
	ReasonReady = "Ready"

	// ReasonProgressing: the part is on its way; nothing needs to be done.
	ReasonProgressing = "Progressing"

	// ReasonInternalError: something failed that should not; the message has the error, and it is tried again.
	ReasonInternalError = "InternalError"

	// ReasonPlatformClusterError: the platform cluster's API refused or failed; it is tried again.
	ReasonPlatformClusterError = "PlatformClusterError"

	// ReasonDowngradeNotSupported: the wanted version, of Kubernetes or of a provider, is older than the one that runs.
	ReasonDowngradeNotSupported = "DowngradeNotSupported"

	// ReasonInvalidSpec: the spec cannot be carried out as it is; the message names field, value and what is legal.
	ReasonInvalidSpec = "InvalidSpec"
)

// Reasons of a ProviderConfig and of its components.
const (
	// ReasonFluxMissing: Flux's kinds are not served by the platform cluster.
	ReasonFluxMissing = "FluxMissing"

	// ReasonCertManagerMissing: cert-manager's kinds are not served by the platform cluster.
	ReasonCertManagerMissing = "CertManagerMissing"

	// ReasonCertManagerNotReady: cert-manager's webhook does not answer yet.
	ReasonCertManagerNotReady = "CertManagerNotReady"

	// ReasonOperatorMissing: the CAPI Operator is External, and its kinds are not served.
	ReasonOperatorMissing = "OperatorMissing"

	// ReasonWebhookNotReady: the CAPI Operator's webhook does not answer yet.
	ReasonWebhookNotReady = "WebhookNotReady"

	// ReasonSourceNotReady: a Flux source could not be fetched; the message is Flux's.
	ReasonSourceNotReady = "SourceNotReady"

	// ReasonFluxFailed: a HelmRelease or Kustomization failed; the message is Flux's.
	ReasonFluxFailed = "FluxFailed"

	// ReasonFluxStalled: a HelmRelease or Kustomization has given up; the message is Flux's.
	ReasonFluxStalled = "FluxStalled"

	// ReasonSuspended: the Flux object is suspended.
	ReasonSuspended = "Suspended"

	// ReasonProviderFailed: the CAPI Operator could not install a provider; the message is the operator's.
	ReasonProviderFailed = "ProviderFailed"

	// ReasonSecretNotFound: a config Secret does not exist.
	ReasonSecretNotFound = "SecretNotFound"

	// ReasonClusterClassNotFound: a profile's ClusterClass does not exist.
	ReasonClusterClassNotFound = "ClusterClassNotFound"

	// ReasonNoVersions: neither a profile nor its ClusterClass lists a Kubernetes version.
	ReasonNoVersions = "NoVersions"

	// ReasonProfileConflict: somebody else's ClusterProfile has the name of a profile.
	ReasonProfileConflict = "ProfileConflict"

	// ReasonConflict: an older ProviderConfig installs the same component in another way.
	ReasonConflict = "Conflict"

	// ReasonDeletionBlocked: what is to be removed is still used; the message lists by whom.
	ReasonDeletionBlocked = "DeletionBlocked"

	// ReasonUninstalling: removal is under way; the message says what it waits for.
	ReasonUninstalling = "Uninstalling"
)

// Reasons of a Cluster.
const (
	// ReasonProfileNotFound: the ClusterProfile or its ProviderConfig does not exist.
	ReasonProfileNotFound = "ProfileNotFound"

	// ReasonVersionNotSupported: the profile does not offer the wanted Kubernetes version.
	ReasonVersionNotSupported = "VersionNotSupported"

	// ReasonProvidersNotReady: the providers of the ProviderConfig are not ready.
	ReasonProvidersNotReady = "ProvidersNotReady"

	// ReasonClusterConflict: a CAPI Cluster of that name exists and belongs to somebody else.
	ReasonClusterConflict = "ClusterConflict"

	// ReasonRejected: CAPI refused the CAPI Cluster; the message is CAPI's.
	ReasonRejected = "Rejected"

	// ReasonConditionMissing: CAPI has not reported a condition yet, or not for the current spec.
	ReasonConditionMissing = "ConditionMissing"

	// ReasonWaitingForFinalizers: somebody else's finalizers hold the object; the message lists them.
	ReasonWaitingForFinalizers = "WaitingForFinalizers"

	// ReasonDeleting: the CAPI Cluster is being deleted; the message is CAPI's.
	ReasonDeleting = "Deleting"
)

// Reasons of an AccessRequest.
const (
	// ReasonClusterNotFound: the Cluster does not exist.
	ReasonClusterNotFound = "ClusterNotFound"

	// ReasonClusterNotReady: the cluster has no working API server yet.
	ReasonClusterNotReady = "ClusterNotReady"

	// ReasonKubeconfigRefused: the admin kubeconfig runs a program, reads a file, or is not usable.
	ReasonKubeconfigRefused = "KubeconfigRefused"

	// ReasonAdminKubeconfigExpired: the client certificate of the admin kubeconfig has expired; the message says when.
	ReasonAdminKubeconfigExpired = "AdminKubeconfigExpired"

	// ReasonUnauthorized: the cluster's API server refuses the admin kubeconfig's credentials; it is tried again.
	ReasonUnauthorized = "Unauthorized"

	// ReasonClusterUnreachable: the cluster's API server does not answer; it is tried again.
	ReasonClusterUnreachable = "ClusterUnreachable"

	// ReasonResourceNotManaged: an object in the cluster has a requested name and belongs to somebody else.
	ReasonResourceNotManaged = "ResourceNotManaged"

	// ReasonNotSupported: the profile does not offer this kind of access.
	ReasonNotSupported = "NotSupported"
)
