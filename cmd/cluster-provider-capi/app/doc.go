// SPDX-License-Identifier: Apache-2.0

// Package app has the commands of cluster-provider-capi: init and run, which openmcp-operator starts, and render, which
// people use.
package app
