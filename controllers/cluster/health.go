// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// mirroredTypes are the types of CAPI's conditions that are copied to the Cluster. All of them are good when True; the
// others of a CAPI Cluster are either good when False or parts of these.
var mirroredTypes = []string{
	clusterv1.ClusterInfrastructureReadyCondition,
	clusterv1.ClusterControlPlaneInitializedCondition,
	clusterv1.ClusterControlPlaneAvailableCondition,
	clusterv1.ClusterWorkersAvailableCondition,
	clusterv1.ClusterRemoteConnectionProbeCondition,
	clusterv1.ClusterTopologyReconciledCondition,
	clusterv1.ClusterAvailableCondition,
}

// latchedType is the one condition that CAPI writes once and, from then on, leaves as it is: its observedGeneration stays
// that of the day when the control plane was initialized. Once True it is true for good.
const latchedType = clusterv1.ClusterControlPlaneInitializedCondition

// unseenMessage is what is said as long as CAPI's status is not about the current spec.
const unseenMessage = "CAPI has not seen the current spec of the CAPI Cluster yet"

// health is what CAPI says about a cluster.
type health struct {
	// conditions are copies of CAPI's, with a prefix before their types.
	conditions []metav1.Condition

	// available says that the cluster is as it should be, for the current spec.
	available bool

	// message says what is still missing.
	message string
}

// healthOf returns what CAPI says about a cluster. What CAPI does not say, or has not said for the current spec, is
// unknown, and never good: CAPI writes its conditions some time after the object.
func healthOf(live *clusterv1.Cluster) health {
	var h health
	for _, kind := range mirroredTypes {
		c := mirror(live, kind)
		h.conditions = append(h.conditions, c)
		if c.Status != metav1.ConditionTrue && h.message == "" {
			h.message = fmt.Sprintf("%s: %s", kind, cmp.Or(c.Message, c.Reason))
		}
	}
	initialization := live.Status.Initialization
	switch {
	case isPaused(live):
		h.message = "the CAPI Cluster is paused (spec.paused or the annotation " + clusterv1.PausedAnnotation +
			"): CAPI does nothing for it, and reports nothing"
	case live.Status.ObservedGeneration != live.Generation:
		h.message = unseenMessage
	case h.message != "":
	case !ptr.Deref(initialization.InfrastructureProvisioned, false):
		h.message = "the infrastructure is not provisioned yet"
	case !ptr.Deref(initialization.ControlPlaneInitialized, false):
		h.message = "the control plane is not initialized yet"
	default:
		h.available = true
	}
	return h
}

// isPaused says whether somebody keeps CAPI from working on a cluster.
func isPaused(live *clusterv1.Cluster) bool {
	_, annotated := live.Annotations[clusterv1.PausedAnnotation]
	return annotated || ptr.Deref(live.Spec.Paused, false)
}

// mirror returns a copy of one condition of a CAPI Cluster.
func mirror(live *clusterv1.Cluster, kind string) metav1.Condition {
	out := metav1.Condition{
		Type: providerv1.CAPIConditionPrefix + kind, Status: metav1.ConditionUnknown, Reason: providerv1.ReasonConditionMissing,
	}
	switch c := apimeta.FindStatusCondition(live.Status.Conditions, kind); {
	case c == nil:
		out.Message = "CAPI has not reported it yet"
	case c.ObservedGeneration != live.Generation && (kind != latchedType || c.Status != metav1.ConditionTrue):
		out.Message = "CAPI has not reported it for the current spec yet"
	default:
		out.Status, out.Reason, out.Message = c.Status, c.Reason, c.Message
	}
	return out
}

// endpointOf returns the URL of a cluster's API server; empty as long as there is none.
func endpointOf(live *clusterv1.Cluster) string {
	if live == nil || !live.Spec.ControlPlaneEndpoint.IsValid() {
		return ""
	}
	endpoint := live.Spec.ControlPlaneEndpoint
	return "https://" + net.JoinHostPort(endpoint.Host, strconv.Itoa(int(endpoint.Port)))
}
