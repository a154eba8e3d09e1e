// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/controlplane/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/local/workload"
)

// report writes into the status how the processes are. The version is that of the spec as soon as the API server, which
// was restarted for it, answers.
func report(plane *controlplanev1.LocalControlPlane, state workload.State) {
	plane.Status.ExternalManagedControlPlane = ptr.To(true)
	if state.Ready {
		plane.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		plane.Status.Version = plane.Spec.Version
		plane.Status.Versions = []clusterv1.StatusVersion{{Version: plane.Spec.Version}}
		setAvailable(plane, metav1.ConditionTrue, clusterv1.AvailableReason, "")
	} else {
		setAvailable(plane, metav1.ConditionFalse, clusterv1.NotAvailableReason, state.Message)
	}
	rolling := metav1.Condition{
		Type: controlplanev1.RollingOutCondition, Status: metav1.ConditionFalse, Reason: clusterv1.NotRollingOutReason,
	}
	if from, to := plane.Status.Version, plane.Spec.Version; from != "" && from != to {
		rolling.Status, rolling.Reason = metav1.ConditionTrue, clusterv1.RollingOutReason
		rolling.Message = fmt.Sprintf("Changing the version from %s to %s", from, to)
	}
	conditions.Set(plane, rolling)
}
