// SPDX-License-Identifier: Apache-2.0

// Package cluster makes a CAPI Cluster for each OpenControlPlane Cluster whose ClusterProfile belongs to this instance of
// the provider, keeps it as the profile says, and reports what CAPI says about it.
//
// What keeps a new cluster from being made - an unsupported version, providers that are not ready, a ClusterClass that
// is missing - is only reported on a cluster that exists already: its health and its endpoint stay current.
//
// The CAPI Cluster has no owner reference. A foreground deletion of the Cluster would have Kubernetes' garbage collector
// delete the CAPI Cluster at once, while others still hold the Cluster with their finalizers, and a backup that is
// restored has new UIDs, so that the collector would take running clusters for orphans. The finalizer of the Cluster,
// and labels, do what is needed.
//
// The package never touches a CAPI Cluster without its labels, and never talks to the cluster that CAPI made. Read the
// two lists of steps in controller.go next.
package cluster
