// SPDX-License-Identifier: Apache-2.0

// Package testenv starts a real API server with all CRDs that the controllers read or write, for their tests. No
// controller of Flux, CAPI or OpenControlPlane runs there: tests play their parts. Only tests import it.
package testenv
