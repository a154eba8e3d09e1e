// SPDX-License-Identifier: Apache-2.0

// Package remote connects to the clusters that CAPI made, with the admin kubeconfig that CAPI leaves on the platform
// cluster. The kubeconfig is read at every use, and no connection outlives the version of the Secret that it came from.
//
// What a kubeconfig says is not trusted: one that would run a program, read a file, use a proxy, or talk to a server that
// cannot be told from another is refused. No error that the package returns contains credentials. It never hands out the
// kubeconfig or its credentials. Read kubeconfig.go for what is refused.
package remote
