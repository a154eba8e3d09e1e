// SPDX-License-Identifier: Apache-2.0

// Package controllers adds the three controllers of the provider to a manager: config for ProviderConfigs, cluster for
// Clusters, access for AccessRequests.
package controllers
