// SPDX-License-Identifier: Apache-2.0

// Command virtual-node registers one Node and runs the pods that are bound to it as local processes: a table maps each
// image to a binary. A pod gets what a kubelet would give it as far as a process can have it: a kubeconfig with a token
// of its own ServiceAccount, its environment, its secret, configMap, projected, downwardAPI and emptyDir volumes in a
// folder, a made-up pod IP, restarts with backoff, readiness, and a graceful stop. What it leaves out: isolation,
// networking between pods, exec, and resource limits.
//
// It also serves the API server's egress proxy (HTTP CONNECT on a unix socket), which maps podIP:port to the loopback
// port that the process really listens on; that is how webhooks with a service reference reach their pods.
//
// The pod's life is in pod.go, that of one container in container.go. Nothing outlives this process.
package main
