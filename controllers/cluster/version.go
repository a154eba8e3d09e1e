// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// versionChoice is the Kubernetes version of a cluster.
type versionChoice struct {
	// version is what CAPI is asked for, without the leading v. When the wanted one cannot be had, it is the one that
	// runs, and empty for a new cluster.
	version string

	// deprecated says that the profile calls the version deprecated.
	deprecated bool

	// reason and message say why the wanted version cannot be had; both are empty when it can.
	reason, message string
}

// chooseVersion finds the wanted version among the supported ones: exactly that one, or the newest patch of a minor, or
// the newest that is not deprecated when none is wanted. The running version is empty for a new cluster; one that exists
// keeps it as long as no other is wanted, and never goes back behind it.
func chooseVersion(wanted string, supported []clustersv1.SupportedK8sVersion, running string) versionChoice {
	wanted, running = strings.TrimPrefix(wanted, "v"), strings.TrimPrefix(running, "v")
	supported = gitops.SupportedVersions(providerv1.Profile{SupportedVersions: supported}, nil)
	match := func(v clustersv1.SupportedK8sVersion) bool { return v.Version == wanted }
	switch {
	case wanted == "" && running != "":
		match = func(v clustersv1.SupportedK8sVersion) bool { return v.Version == running }
	case wanted == "":
		match = func(v clustersv1.SupportedK8sVersion) bool { return !v.Deprecated }
	case strings.Count(wanted, ".") == 1:
		match = func(v clustersv1.SupportedK8sVersion) bool { return strings.HasPrefix(v.Version, wanted+".") }
	}
	i := slices.IndexFunc(supported, match)
	if i < 0 {
		return versionChoice{
			version: running, reason: providerv1.ReasonVersionNotSupported, message: notSupported(wanted, supported, running),
		}
	}
	chosen := supported[i]
	if isOlder(chosen.Version, running) {
		return versionChoice{
			version: running, reason: providerv1.ReasonDowngradeNotSupported,
			message: fmt.Sprintf("spec.kubernetes.version: %s is older than %s, which the cluster has: a cluster cannot be downgraded; "+
				"ask for %s or a newer one", chosen.Version, running, running),
		}
	}
	return versionChoice{version: chosen.Version, deprecated: chosen.Deprecated}
}

// notSupported says that a version is not supported, and which are.
func notSupported(wanted string, supported []clustersv1.SupportedK8sVersion, running string) string {
	subject := fmt.Sprintf("the profile does not support %s", wanted)
	switch {
	case wanted == "" && running != "":
		subject = fmt.Sprintf("it is empty, and the profile does not support %s, which the cluster has", running)
	case wanted == "":
		subject = "it is empty, and the profile has no version that is not deprecated"
	}
	if len(supported) == 0 {
		return fmt.Sprintf("spec.kubernetes.version: %s; it supports no version at all", subject)
	}
	names := make([]string, len(supported))
	for i, v := range supported {
		names[i] = v.Version
		if v.Deprecated {
			names[i] += " (deprecated)"
		}
	}
	return fmt.Sprintf("spec.kubernetes.version: %s; supported are %s", subject, strings.Join(names, ", "))
}

// isOlder says whether version a is older than b. What follows a plus sign has no order, as CAPI sees it too.
func isOlder(a, b string) bool {
	va, errA := version.ParseSemantic(a)
	vb, errB := version.ParseSemantic(b)
	return errA == nil && errB == nil && va.LessThan(vb)
}

// runningVersion returns the Kubernetes version that the control plane of a cluster runs: the oldest one while it is
// being upgraded, and the wanted one when CAPI does not tell.
func runningVersion(live *clusterv1.Cluster, wanted string) string {
	if live == nil || live.Status.ControlPlane == nil || len(live.Status.ControlPlane.Versions) == 0 {
		return wanted
	}
	oldest := slices.MinFunc(live.Status.ControlPlane.Versions, func(a, b clusterv1.StatusVersion) int {
		return gitops.CompareVersions(a.Version, b.Version)
	})
	return oldest.Version
}
