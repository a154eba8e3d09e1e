// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeIP is the address of the node, on which nothing but the logs are served.
const nodeIP = "127.0.0.1"

// statusInput is what the status of a pod is made from.
type statusInput struct {
	ip         string
	started    time.Time
	init, main []corev1.ContainerStatus
	// qos is the class that the API server derived from the spec; it must never change.
	qos corev1.PodQOSClass
	// waiting says what the pod needs before its containers can start.
	waiting string
	// finished is true when no container will run again.
	finished bool
	previous []corev1.PodCondition
}

// podStatus derives a pod's status from its containers' as a kubelet does.
func podStatus(in statusInput) corev1.PodStatus {
	started := metav1.NewTime(in.started)
	status := corev1.PodStatus{
		Phase:                 podPhase(in),
		HostIP:                nodeIP,
		HostIPs:               []corev1.HostIP{{IP: nodeIP}},
		PodIP:                 in.ip,
		PodIPs:                []corev1.PodIP{{IP: in.ip}},
		StartTime:             &started,
		InitContainerStatuses: in.init,
		ContainerStatuses:     in.main,
		QOSClass:              in.qos,
	}
	if in.waiting != "" {
		for i := range status.ContainerStatuses {
			if w := status.ContainerStatuses[i].State.Waiting; w != nil {
				w.Message = in.waiting
			}
		}
	}
	initialized := true
	for _, c := range in.init {
		initialized = initialized && c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
	}
	ready := status.Phase == corev1.PodRunning
	for _, c := range in.main {
		ready = ready && c.Ready
	}
	for kind, value := range map[corev1.PodConditionType]bool{
		corev1.PodScheduled: true, corev1.PodInitialized: initialized, corev1.ContainersReady: ready, corev1.PodReady: ready,
	} {
		status.Conditions = append(status.Conditions, podCondition(kind, value, in))
	}
	sortConditions(status.Conditions)
	return status
}

// podPhase is Pending until every container has run once, and final when none will run again.
func podPhase(in statusInput) corev1.PodPhase {
	if in.finished {
		for _, c := range append(append([]corev1.ContainerStatus{}, in.init...), in.main...) {
			if c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
				return corev1.PodFailed
			}
		}
		return corev1.PodSucceeded
	}
	for _, c := range in.main {
		if c.State.Waiting != nil && c.LastTerminationState.Terminated == nil {
			return corev1.PodPending
		}
	}
	return corev1.PodRunning
}

func podCondition(kind corev1.PodConditionType, value bool, in statusInput) corev1.PodCondition {
	condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	switch {
	case value:
		condition.Status = corev1.ConditionTrue
	case in.finished:
		condition.Reason = "PodCompleted"
	case kind == corev1.PodInitialized:
		condition.Reason = "ContainersNotInitialized"
	default:
		condition.Reason = "ContainersNotReady"
	}
	for _, old := range in.previous {
		if old.Type == kind && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
	}
	return condition
}
