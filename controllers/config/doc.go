// SPDX-License-Identifier: Apache-2.0

// Package config reconciles ProviderConfigs: it applies the Flux objects that install the CAPI Operator and the CAPI
// providers, publishes a ClusterProfile for each profile, and takes all of it away again in the reverse order.
//
// What is applied is decided in package gitops; this package decides when. Read the step lists in controller.go first.
package config
