// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"github.com/openmcp-project/cluster-provider-capi/test/platform"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/local/config"
)

// OnPlatform returns the target that a platform of package platform is.
func OnPlatform(p *platform.Platform) Target {
	return Target{
		Config:       p.RESTConfig(),
		Image:        platform.ProviderImage,
		Defaults:     p.Defaults(),
		Local:        p.LocalFetchConfig(platform.LocalVersions[0]),
		ClusterClass: config.ClusterClass,
		Commit: func(files map[string][]byte) (string, error) {
			_, err := p.PutGit("platform", files)
			return p.GitURL() + "/platform", err
		},
	}
}
