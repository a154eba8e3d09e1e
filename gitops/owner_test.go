// SPDX-License-Identifier: Apache-2.0

package gitops_test

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// aged returns a ProviderConfig with one provider that is some minutes old.
func aged(name string, minutes int, version string) providerv1.ProviderConfig {
	return providerv1.ProviderConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(-time.Duration(minutes) * time.Minute)),
		},
		Spec: providerv1.ProviderConfigSpec{Providers: []providerv1.Provider{
			{Type: providerv1.InfrastructureType, Name: "aws", Version: version},
		}},
	}
}

func TestClaims(t *testing.T) {
	const aws = "infrastructure-aws"
	defaults := gitops.DefaultDefaults("v0.1.0")
	old, equal, other := aged("old", 30, "v1.0.0"), aged("equal", 20, "v1.0.0"), aged("other", 10, "v2.0.0")
	// The default namespace is the same wish as the namespace itself.
	equal.Spec.Providers[0].Namespace = "aws-infrastructure-system"
	going := aged("going", 40, "v1.0.0")
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	twin := aged("a-twin", 30, "v1.0.0")
	explicit := aged("explicit", 5, "v1.0.0")
	explicit.Spec.Core.Version = "v1.13.0"

	all := []providerv1.ProviderConfig{other, old, equal}
	for name, c := range map[string]struct {
		of        string
		configs   []providerv1.ProviderConfig
		component string
		want      gitops.Claim
	}{
		"the oldest owns":                  {"old", all, aws, gitops.Claim{Owner: "old"}},
		"equal specs share":                {"equal", all, aws, gitops.Claim{Owner: "old"}},
		"a different spec conflicts":       {"other", all, aws, gitops.Claim{Owner: "old", Conflict: true}},
		"one that goes yields":             {"old", []providerv1.ProviderConfig{going, old}, aws, gitops.Claim{Owner: "old"}},
		"the last that goes still owns":    {"going", []providerv1.ProviderConfig{going}, aws, gitops.Claim{Owner: "going"}},
		"names decide between twins":       {"old", []providerv1.ProviderConfig{old, twin}, aws, gitops.Claim{Owner: "a-twin"}},
		"what is left out never conflicts": {"old", []providerv1.ProviderConfig{explicit, old}, gitops.Core, gitops.Claim{Owner: "old"}},
		"what is said may conflict": {
			"explicit", []providerv1.ProviderConfig{explicit, old}, gitops.Core, gitops.Claim{Owner: "old", Conflict: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(gitops.Claims(c.of, c.configs, defaults)[c.component]).To(Equal(c.want))
		})
	}
}

func TestClusterProfileName(t *testing.T) {
	g := NewWithT(t)
	in := input(providerv1.ProviderConfigSpec{})
	g.Expect(in.ClusterProfileName(providerv1.Profile{Name: "small"})).To(Equal("default.capi.config.small"))
	g.Expect(in.ClusterProfileName(providerv1.Profile{Name: "small", ClusterProfileName: "own"})).To(Equal("own"))
	_, err := in.ClusterProfileName(providerv1.Profile{Name: "a23456789012345678901234567890123456789012345678901234567890"})
	g.Expect(err).To(MatchError(And(ContainSubstring("63"), ContainSubstring("clusterProfileName"))))
}

func TestSupportedVersionsAreNewestFirst(t *testing.T) {
	g := NewWithT(t)
	g.Expect(gitops.SupportedVersions(providerv1.Profile{}, []string{"v1.9.1", "v1.35.0", "v1.36.3"})).To(Equal(
		[]clustersv1.SupportedK8sVersion{{Version: "1.36.3"}, {Version: "1.35.0"}, {Version: "1.9.1"}}))
	own := providerv1.Profile{SupportedVersions: []clustersv1.SupportedK8sVersion{{Version: "1.34.1", Deprecated: true}, {Version: "v1.35.0"}}}
	g.Expect(gitops.SupportedVersions(own, []string{"v1.36.3"})).To(Equal(
		[]clustersv1.SupportedK8sVersion{{Version: "1.35.0"}, {Version: "1.34.1", Deprecated: true}}))
}

func TestClusterProfile(t *testing.T) {
	g := NewWithT(t)
	in := input(providerv1.ProviderConfigSpec{})
	profile, err := in.ClusterProfile(providerv1.Profile{Name: "small"}, []string{"v1.34.1", "v1.35.0"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(profile.Labels).To(HaveKeyWithValue(providerv1.ProfileLabel, "small"))
	g.Expect(profile.Labels).To(HaveKeyWithValue(providerv1.ManagedByLabel, "capi"))
	g.Expect(profile.Labels).To(HaveKeyWithValue(providerv1.ProviderConfigLabel, "config"))
	g.Expect(profile.Labels).NotTo(HaveKey(providerv1.ComponentLabel), "it is no component, and is never pruned as one")
	g.Expect(profile.Spec.ProviderRef.Name).To(Equal("capi"))
	g.Expect(profile.Spec.ProviderConfigRef.Name).To(Equal("config"))
	g.Expect(profile.Spec.SupportedVersions).To(HaveLen(2))

	for _, wrong := range []string{"v1.34", "latest", "1.34.x"} {
		_, err = in.ClusterProfile(providerv1.Profile{
			Name: "small", SupportedVersions: []clustersv1.SupportedK8sVersion{{Version: wrong}},
		}, nil)
		g.Expect(err).To(MatchError(And(ContainSubstring("spec.profiles[small].supportedVersions"), ContainSubstring(wrong))))
	}
}

func TestCompareVersions(t *testing.T) {
	g := NewWithT(t)
	ascending := []string{"nonsense", "1.9.10", "v1.34.0-rc.1", "1.34.0", "v1.34.2", "1.34.2+rke2r1", "1.34.2+rke2r2", "1.100.0"}
	for i, a := range ascending {
		for j, b := range ascending {
			g.Expect(gitops.CompareVersions(a, b)).To(Equal(cmp.Compare(i, j)), "%s and %s", a, b)
		}
	}
}
