// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func running(ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func waiting(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func ended(code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
}

func TestPodStatus(t *testing.T) {
	t.Parallel()
	crashed := waiting("CrashLoopBackOff")
	crashed.LastTerminationState = ended(1).State
	for name, test := range map[string]struct {
		in          statusInput
		phase       corev1.PodPhase
		ready, init corev1.ConditionStatus
	}{
		"pending before its first container": {
			in: statusInput{main: []corev1.ContainerStatus{waiting("ContainerCreating")}}, phase: corev1.PodPending, ready: "False", init: "True",
		},
		"pending while an init container runs": {
			in: statusInput{
				init: []corev1.ContainerStatus{running(false)}, main: []corev1.ContainerStatus{waiting("PodInitializing")},
			}, phase: corev1.PodPending, ready: "False", init: "False",
		},
		"running and ready": {
			in:    statusInput{init: []corev1.ContainerStatus{ended(0)}, main: []corev1.ContainerStatus{running(true)}},
			phase: corev1.PodRunning, ready: "True", init: "True",
		},
		"running but not ready with one container that is not": {
			in: statusInput{main: []corev1.ContainerStatus{running(true), running(false)}}, phase: corev1.PodRunning, ready: "False", init: "True",
		},
		"running while a container waits to be started again": {
			in: statusInput{main: []corev1.ContainerStatus{crashed}}, phase: corev1.PodRunning, ready: "False", init: "True",
		},
		"succeeded": {
			in: statusInput{main: []corev1.ContainerStatus{ended(0)}, finished: true}, phase: corev1.PodSucceeded, ready: "False", init: "True",
		},
		"failed": {
			in:    statusInput{main: []corev1.ContainerStatus{ended(0), ended(1)}, finished: true},
			phase: corev1.PodFailed, ready: "False", init: "True",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			test.in.qos, test.in.ip = corev1.PodQOSBurstable, "10.244.0.2"
			status := podStatus(test.in)
			g.Expect(status.Phase).To(Equal(test.phase))
			g.Expect(condition(status, corev1.PodReady).Status).To(Equal(test.ready))
			g.Expect(condition(status, corev1.PodInitialized).Status).To(Equal(test.init))
			g.Expect(status.QOSClass).To(Equal(corev1.PodQOSBurstable))
			g.Expect(status.PodIP).To(Equal("10.244.0.2"))
		})
	}
}

func TestPodStatusTellsWhatAPodWaitsFor(t *testing.T) {
	t.Parallel()
	status := podStatus(statusInput{
		main: []corev1.ContainerStatus{waiting("ContainerCreating")}, waiting: `volume cert: secret "tls" not found`,
	})
	NewWithT(t).Expect(status.ContainerStatuses[0].State.Waiting.Message).To(ContainSubstring(`secret "tls" not found`))
}

func TestPodStatusKeepsTransitionTimes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	in := statusInput{main: []corev1.ContainerStatus{running(true)}, previous: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: long},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: long},
	}}
	status := podStatus(in)
	g.Expect(condition(status, corev1.PodReady).LastTransitionTime).NotTo(Equal(long))
	g.Expect(condition(status, corev1.PodInitialized).LastTransitionTime).To(Equal(long))
	g.Expect(podStatus(in).Conditions).To(HaveLen(4))
}

func condition(status corev1.PodStatus, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}
