// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

func TestClusterNameIsLegalAndUnique(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("a", 253)
	seen := map[string]string{}
	for _, name := range []string{
		"team", "team.a", "team-a", long, long[:252] + "b", "a." + long[:200], "x.y.z", "9.9", strings.Repeat("a", 63),
	} {
		for _, limit := range []int32{0, 20, 40, 63} {
			got := clusterName(name, limit)
			g.Expect(validation.IsDNS1123Label(got)).To(BeEmpty(), "%q of %q", got, name)
			if limit > 0 {
				g.Expect(len(got)).To(BeNumerically("<=", limit))
			}
			if other, taken := seen[got]; taken {
				g.Expect(other).To(Equal(name), "two names become %q", got)
			}
			seen[got] = name
		}
		g.Expect(validation.IsValidLabelValue(clusterNameLabel(name))).To(BeEmpty())
	}
	g.Expect(clusterName("team", 63)).To(Equal("team"))
}

func TestChooseVersion(t *testing.T) {
	supported := []clustersv1.SupportedK8sVersion{
		{Version: "1.34.1"}, {Version: "1.34.2"}, {Version: "1.35.0", Deprecated: true}, {Version: "1.33.9"}, {Version: "1.36.2-gke.2064000"},
	}
	for name, c := range map[string]struct{ wanted, running, version, reason string }{
		"exact":                {wanted: "1.34.1", version: "1.34.1"},
		"with a v":             {wanted: "v1.34.1", version: "1.34.1"},
		"newest patch":         {wanted: "1.34", version: "1.34.2"},
		"newest":               {version: "1.36.2-gke.2064000"},
		"minor of a build":     {wanted: "1.36", version: "1.36.2-gke.2064000"},
		"deprecated":           {wanted: "1.35", version: "1.35.0"},
		"unsupported":          {wanted: "1.20", reason: providerv1.ReasonVersionNotSupported},
		"no such patch":        {wanted: "1.34.9", reason: providerv1.ReasonVersionNotSupported},
		"1.3 is not 1.34":      {wanted: "1.3", reason: providerv1.ReasonVersionNotSupported},
		"keeps the running":    {running: "v1.34.1", version: "1.34.1"},
		"upgrade":              {wanted: "1.35.0", running: "1.34.1", version: "1.35.0"},
		"downgrade":            {wanted: "1.33.9", running: "1.34.1", version: "1.34.1", reason: providerv1.ReasonDowngradeNotSupported},
		"unsupported, running": {wanted: "1.20", running: "1.34.1", version: "1.34.1", reason: providerv1.ReasonVersionNotSupported},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			choice := chooseVersion(c.wanted, supported, c.running)
			g.Expect(choice.version).To(Equal(c.version))
			g.Expect(choice.reason).To(Equal(c.reason))
			g.Expect(choice.message == "").To(Equal(c.reason == ""))
		})
	}
}
