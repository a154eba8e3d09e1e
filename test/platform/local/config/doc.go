// SPDX-License-Identifier: Apache-2.0

// Package config has what a release of the provider "local" consists of: components.yaml, metadata.yaml and
// clusterclass.yaml. components.yaml is made of the CRDs, which controller-gen writes from the types, and manager.yaml:
//
//	controller-gen object crd paths=./test/platform/local/api/... output:crd:dir=test/platform/local/config/crd
//	go test ./test/platform/local/config -update
package config
