// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	controlplanev1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/controlplane/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/local/workload"
)

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		running            string
		state              workload.State
		available, rolling bool
		version            string
	}{
		"is not rolling out while it starts for the first time": {"", workload.State{Message: "wait"}, false, false, ""},
		"has the version once it answers":                       {"", workload.State{Ready: true}, true, false, "v2.0.0"},
		"keeps the old version while it restarts":               {"v1.0.0", workload.State{Message: "wait"}, false, true, "v1.0.0"},
		"has the new version after the restart":                 {"v1.0.0", workload.State{Ready: true}, true, false, "v2.0.0"},
		"is not rolling out when it crashes":                    {"v2.0.0", workload.State{Message: "gone"}, false, false, "v2.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plane := &controlplanev1.LocalControlPlane{Spec: controlplanev1.LocalControlPlaneSpec{Version: "v2.0.0"}}
			plane.Status.Version = c.running
			report(plane, c.state)
			g.Expect(apimeta.IsStatusConditionTrue(plane.Status.Conditions, "Available")).To(Equal(c.available))
			g.Expect(apimeta.IsStatusConditionTrue(plane.Status.Conditions, "RollingOut")).To(Equal(c.rolling))
			g.Expect(plane.Status.Version).To(Equal(c.version))
			g.Expect(apimeta.FindStatusCondition(plane.Status.Conditions, "Available").Message).To(Equal(c.state.Message))
		})
	}
}
