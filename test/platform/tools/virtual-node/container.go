// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// retryPeriod is the pause before another try when a container cannot be started at all.
	retryPeriod = 2 * time.Second
	// firstBackoff and lastBackoff bound the pause between restarts; a kubelet starts at 10 seconds.
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
	// steadyPeriod of running makes the next restart start from firstBackoff again.
	steadyPeriod = time.Minute
)

// container runs one container of a pod again and again, as the restart policy says.
type container struct {
	pod     *pod
	init    bool
	changed chan struct{}

	mu     sync.Mutex
	spec   *corev1.Container
	status corev1.ContainerStatus
}

// startError is why a container cannot be started; the reason is one that kubelets use.
type startError struct{ reason, message string }

func (e *startError) Error() string { return e.message }

func newContainer(p *pod, spec *corev1.Container, init bool) *container {
	c := &container{pod: p, init: init, changed: make(chan struct{}, 1), spec: spec}
	c.status = corev1.ContainerStatus{
		Name: spec.Name, Image: spec.Image, Started: ptr.To(false),
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
	}
	if init {
		c.status.State.Waiting.Reason = "PodInitializing"
	}
	return c
}

// run returns when the container has ended for good, or ctx has.
func (c *container) run(ctx context.Context) {
	backoff := firstBackoff
	for ctx.Err() == nil {
		began := time.Now()
		err := c.runOnce(ctx)
		pause := retryPeriod
		switch {
		case err != nil:
			c.setWaiting(err.reason, err.message)
		case ctx.Err() != nil || !c.restarts():
			return
		default:
			if time.Since(began) > steadyPeriod {
				backoff = firstBackoff
			}
			pause, backoff = backoff, min(2*backoff, lastBackoff)
			c.setWaiting("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container %s", pause, c.status.Name))
		}
		select {
		case <-ctx.Done():
		case <-c.changed:
		case <-time.After(pause):
		}
	}
}

// runOnce starts the process and waits for its end; an error means that it never started.
func (c *container) runOnce(ctx context.Context) *startError {
	cmd, err := c.command()
	if err != nil {
		return err
	}
	logFile, openErr := os.OpenFile(c.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if openErr != nil {
		return &startError{"RunContainerError", openErr.Error()}
	}
	defer func() { _ = logFile.Close() }()
	cmd.Stdout, cmd.Stderr = logFile, logFile
	process, startErr := startProcess(cmd)
	if startErr != nil {
		return &startError{"RunContainerError", startErr.Error()}
	}
	began := time.Now()
	c.setRunning(process, began)

	probing, stopProbing := context.WithCancel(ctx)
	defer stopProbing()
	go c.probe(probing)
	select {
	case <-process.done:
	case <-c.changed:
		process.stop(ctx, c.pod.gracePeriod())
	case <-ctx.Done():
		process.stop(context.Background(), c.pod.gracePeriod())
	}
	stopProbing()
	c.setTerminated(process, began)
	return nil
}

// command is the process that stands for the container.
func (c *container) command() (*exec.Cmd, *startError) {
	spec, pod := c.current(), c.pod.current()
	entry, ok, err := loadImage(c.pod.agent.table, spec.Image)
	if err != nil {
		return nil, &startError{"ErrImagePull", err.Error()}
	}
	if !ok {
		return nil, &startError{"ErrImagePull", fmt.Sprintf("no local binary stands for image %q", spec.Image)}
	}
	env, err := c.pod.agent.content.environment(pod, spec)
	if err != nil {
		return nil, &startError{"CreateContainerConfigError", err.Error()}
	}
	mounted := containerMounts(spec, c.pod.volumes())
	root := filepath.Join(c.pod.dir, "containers", spec.Name)
	fill := placeholders{
		port:       c.pod.realPort,
		dir:        func(path string) string { return mounted.dir(root, path) },
		kubeconfig: kubeconfigPath(c.pod.dir),
	}
	args, err := entry.arguments(expandAll(spec.Command, env), expandAll(spec.Args, env), fill, mounted.rewrite)
	if err != nil {
		return nil, &startError{"CreateContainerError", err.Error()}
	}
	tmp := filepath.Join(root, "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return nil, &startError{"CreateContainerError", err.Error()}
	}
	for name, value := range env {
		env[name] = mounted.rewrite(value)
	}
	env["KUBECONFIG"], env["TMPDIR"], env["HOME"], env["PATH"] = fill.kubeconfig, tmp, root, os.Getenv("PATH")
	for name, value := range entry.Env {
		if env[name], err = fill.expand(value); err != nil {
			return nil, &startError{"CreateContainerError", err.Error()}
		}
	}
	cmd := exec.Command(entry.Path, args...)
	cmd.Dir, cmd.Env = root, environ(env)
	return cmd, nil
}

// restarts says whether the container runs again after it has ended.
func (c *container) restarts() bool {
	failed := c.failed()
	switch c.pod.restartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return failed
	}
	return failed || !c.init
}

// failed says whether the container has ended with an error.
func (c *container) failed() bool {
	status := c.snapshot()
	return status.State.Terminated == nil || status.State.Terminated.ExitCode != 0
}

func (c *container) update(spec *corev1.Container) {
	c.mu.Lock()
	restart := c.spec.Image != spec.Image
	c.spec, c.status.Image = spec.DeepCopy(), spec.Image
	c.mu.Unlock()
	if restart {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
}

func (c *container) setWaiting(reason, message string) {
	c.mu.Lock()
	if ended := c.status.State.Terminated; ended != nil {
		c.status.LastTerminationState.Terminated = ended
	}
	c.status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	c.mu.Unlock()
	c.pod.report()
}

func (c *container) setRunning(p *process, began time.Time) {
	c.mu.Lock()
	if c.status.LastTerminationState.Terminated != nil {
		c.status.RestartCount++
	}
	c.status.ContainerID = fmt.Sprintf("process://%d", p.cmd.Process.Pid)
	c.status.ImageID = "process://" + p.cmd.Path
	c.status.Started = ptr.To(true)
	c.status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(began)}}
	c.mu.Unlock()
	c.pod.report()
}

func (c *container) setTerminated(p *process, began time.Time) {
	ended := &corev1.ContainerStateTerminated{
		ExitCode: p.exitCode(), Reason: "Completed", ContainerID: fmt.Sprintf("process://%d", p.cmd.Process.Pid),
		StartedAt: metav1.NewTime(began), FinishedAt: metav1.Now(),
	}
	if ended.ExitCode != 0 {
		ended.Reason, ended.Message = "Error", tail(c.logPath())
	}
	c.mu.Lock()
	c.status.Ready, c.status.Started = c.init && ended.ExitCode == 0, ptr.To(false)
	c.status.State = corev1.ContainerState{Terminated: ended}
	c.mu.Unlock()
	c.pod.report()
}

func (c *container) setReady(ready bool) {
	c.mu.Lock()
	changed := c.status.Ready != ready && c.status.State.Running != nil
	if changed {
		c.status.Ready = ready
	}
	c.mu.Unlock()
	if changed {
		c.pod.report()
	}
}

func (c *container) snapshot() corev1.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.status.DeepCopy()
}

func (c *container) current() *corev1.Container {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spec.DeepCopy()
}

// logPath outlives the pod: logs are what is left to read after a failure.
func (c *container) logPath() string {
	return c.pod.agent.logPath(c.pod.namespace, c.pod.name, c.status.Name)
}
