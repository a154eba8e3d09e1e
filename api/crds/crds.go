// SPDX-License-Identifier: Apache-2.0

// Package crds embeds the CRDs of this provider, which `init` installs. They are generated from api/v1alpha1 by
// `make manifests`.
package crds

import (
	"embed"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	crdutil "github.com/openmcp-project/controller-utils/pkg/crds"
)

//go:embed manifests
var files embed.FS

// CRDs returns the CRDs of this provider.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return crdutil.CRDsFromFileSystem(files, "manifests")
}
