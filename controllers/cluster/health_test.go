// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// healthyCluster is a CAPI Cluster of which CAPI says, for generation 3, that all is well.
func healthyCluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	c.Status.ObservedGeneration = 3
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	for _, kind := range mirroredTypes {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "Fine", ObservedGeneration: 3,
		})
	}
	return c
}

// condition returns the condition of that type of a CAPI Cluster, to be changed.
func condition(c *clusterv1.Cluster, kind string) *metav1.Condition {
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == kind {
			return &c.Status.Conditions[i]
		}
	}
	return nil
}

func TestHealth(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*clusterv1.Cluster)
		available bool
		message   string
	}{
		"is available": {change: func(*clusterv1.Cluster) {}, available: true},
		"no conditions yet": {
			change:  func(c *clusterv1.Cluster) { c.Status = clusterv1.ClusterStatus{ObservedGeneration: 3} },
			message: "has not reported",
		},
		"one condition is missing": {
			change:  func(c *clusterv1.Cluster) { c.Status.Conditions = c.Status.Conditions[1:] },
			message: mirroredTypes[0] + ": CAPI has not reported it yet",
		},
		"a condition is old": {
			change:  func(c *clusterv1.Cluster) { condition(c, clusterv1.ClusterAvailableCondition).ObservedGeneration = 2 },
			message: "for the current spec",
		},
		"a control plane that was initialized for an older spec still is": {
			change: func(c *clusterv1.Cluster) {
				condition(c, clusterv1.ClusterControlPlaneInitializedCondition).ObservedGeneration = 1
			},
			available: true,
		},
		"a control plane that was not initialized for an older spec may be by now": {
			change: func(c *clusterv1.Cluster) {
				initialized := condition(c, clusterv1.ClusterControlPlaneInitializedCondition)
				initialized.ObservedGeneration, initialized.Status = 1, metav1.ConditionFalse
			},
			message: "for the current spec",
		},
		"the status is old": {
			change:  func(c *clusterv1.Cluster) { c.Status.ObservedGeneration = 2 },
			message: "has not seen the current spec",
		},
		"CAPI says what is wrong": {
			change: func(c *clusterv1.Cluster) {
				infrastructure := condition(c, clusterv1.ClusterInfrastructureReadyCondition)
				infrastructure.Status, infrastructure.Message = metav1.ConditionFalse, "no quota"
			},
			message: "InfrastructureReady: no quota",
		},
		"infrastructure is not provisioned": {
			change:  func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = nil },
			message: "infrastructure is not provisioned",
		},
		"control plane is not initialized": {
			change:  func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = ptr.To(false) },
			message: "control plane is not initialized",
		},
		"paused by spec": {
			change:  func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) },
			message: "paused",
		},
		"paused by annotation": {
			change:  func(c *clusterv1.Cluster) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} },
			message: "paused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			live := healthyCluster()
			c.change(live)
			h := healthOf(live)
			g.Expect(h.available).To(Equal(c.available), h.message)
			g.Expect(h.message).To(ContainSubstring(c.message))
			g.Expect(h.conditions).To(HaveLen(len(mirroredTypes)))
			for _, condition := range h.conditions {
				g.Expect(condition.Type).To(HavePrefix(providerv1.CAPIConditionPrefix))
				g.Expect(condition.Reason).NotTo(BeEmpty())
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	g := NewWithT(t)
	g.Expect(endpointOf(nil)).To(BeEmpty())
	c := healthyCluster()
	g.Expect(endpointOf(c)).To(BeEmpty())
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "2001:db8::1", Port: 6443}
	g.Expect(endpointOf(c)).To(Equal("https://[2001:db8::1]:6443"))
}

func TestRunningVersion(t *testing.T) {
	g := NewWithT(t)
	g.Expect(runningVersion(nil, "v1.36.3")).To(Equal("v1.36.3"))
	c := healthyCluster()
	g.Expect(runningVersion(c, "v1.36.3")).To(Equal("v1.36.3"))
	c.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{
		Versions: []clusterv1.StatusVersion{{Version: "v1.36.3"}, {Version: "v1.35.10"}, {Version: "v1.36.0"}},
	}
	g.Expect(runningVersion(c, "v1.36.3")).To(Equal("v1.35.10"), "the oldest, while it is being upgraded")
}

func TestDeletionMessage(t *testing.T) {
	g := NewWithT(t)
	c := healthyCluster()
	c.Namespace, c.Name, c.Finalizers = "ns", "team", []string{clusterv1.ClusterFinalizer}
	g.Expect(deletionMessage(c)).To(And(ContainSubstring("ns/team"), ContainSubstring("CAPI has not begun")))
	c.Finalizers = append(c.Finalizers, "example.org/b", "example.org/a")
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
		Type: clusterv1.ClusterDeletingCondition, Status: metav1.ConditionTrue,
		Reason: clusterv1.ClusterDeletingWaitingForInfrastructureDeletionReason, Message: "LocalCluster still exists",
	})
	g.Expect(deletionMessage(c)).To(Equal("CAPI Cluster ns/team is being deleted: LocalCluster still exists; " +
		"besides CAPI, these hold it: example.org/a, example.org/b"))
}
