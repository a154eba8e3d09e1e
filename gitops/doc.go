// SPDX-License-Identifier: Apache-2.0

// Package gitops turns a ProviderConfig into the Flux objects and ClusterProfiles that stand for it, and the status of
// Flux objects and CAPI Operator providers into Health.
//
// It is pure: values go in and values come out. It never talks to a cluster, reads a file or a clock, or logs; an error
// from it always means that its input is wrong. The folder sets next to it holds what the emitted Kustomizations apply.
// Read bundle.go first, then the golden files in fixtures/golden.
package gitops
