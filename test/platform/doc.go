// SPDX-License-Identifier: Apache-2.0

// Package platform starts a whole OpenControlPlane platform on one machine, as processes, with Go and nothing else: etcd,
// the Kubernetes control plane, a virtual node that runs pods as processes, Flux, cert-manager, openmcp-operator, an OCI
// registry and a Git server. The binaries are built from pinned modules (tools/go.mod) once and kept in the user's cache.
// The Cluster API Operator, Cluster API, the provider "local" and cluster-provider-capi are published or known as images,
// and run as pods when something installs them.
//
// Everything listens on loopback ports that were free, lives in one folder, and ends with [Platform.Stop], with the
// context, or with the process that called [Start]. Read platform.go for the order of things, parts.go for the flags.
package platform
