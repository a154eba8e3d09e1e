// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API of cluster-provider-capi: the ProviderConfig that a platform owner writes, the
// conditions and reasons that the provider reports on all kinds that it reconciles, and the labels, annotations and
// finalizers that it sets.
//
// The package has no behaviour. Read docs/spec/v1alpha1 for the same from a user's point of view.
//
// +kubebuilder:object:generate=true
// +groupName=capi.cluster.open-control-plane.io
package v1alpha1
