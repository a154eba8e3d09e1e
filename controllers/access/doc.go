// SPDX-License-Identifier: Apache-2.0

// Package access grants AccessRequests: it makes a ServiceAccount with the requested permissions in the cluster that the
// request names, and a Secret with its kubeconfig beside the request; renews the token in good time; and takes everything
// back when the request goes.
//
// A request yields a Secret in its own namespace, and only for a Cluster that belongs to this instance by its
// ClusterProfile: labels on the request do not lead to another cluster. Objects in a cluster that do not carry the labels
// of this very request are never touched. The admin kubeconfig is never handed out.
//
// What was granted is remembered: as long as the request, the cluster's endpoint and CA and the Secret stay as they are,
// a reconciliation sends no request to the cluster and writes nothing. After a restart each request is checked once, and
// whenever a token is renewed.
//
// A request that is being deleted is let go without a look into the cluster when the cluster is gone or being deleted, and
// when the admin kubeconfig has been missing for longer than revokeGrace. A cluster that exists and does not answer holds
// the request until it does: letting go would leave credentials behind that work.
//
// Read the lists of steps in controller.go next.
package access
