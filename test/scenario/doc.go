// SPDX-License-Identifier: Apache-2.0

// Package scenario does, step by step, what a platform owner and the users of a platform do with the provider: from the
// ClusterProvider to a ConfigMap in a new cluster, and back. It needs a platform with Flux, cert-manager and
// openmcp-operator, and finds out by itself whether each step worked. `make demo` shows it, and the end-to-end tests run
// it.
package scenario
