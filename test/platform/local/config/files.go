// SPDX-License-Identifier: Apache-2.0

// Package config embeds the manifests of the CAPI provider local.
package config

import _ "embed"

// ClusterClass is a ClusterClass for clusters of the provider, with its templates, as YAML.
//
//go:embed clusterclass.yaml
var ClusterClass string
