// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
)

// refreshPeriod is how soon rotated Secrets, ConfigMaps and tokens reach the files of a pod.
const refreshPeriod = time.Second

// pod runs the containers of one pod; everything that it owns lies in dir and in its ports.
type pod struct {
	agent           *agent
	namespace, name string
	restartPolicy   corev1.RestartPolicy
	dir             string
	ip              string
	tokens          *tokens
	cancel          context.CancelFunc
	done            chan struct{}

	mu       sync.Mutex
	spec     *corev1.Pod
	started  time.Time
	ports    map[int32]int
	init     []*container
	main     []*container
	waiting  string
	finished bool
	grace    time.Duration

	reporting sync.Mutex
}

// newPod prepares a pod; run does the work.
func newPod(a *agent, spec *corev1.Pod, ip string) *pod {
	p := &pod{
		agent:     a,
		namespace: spec.Namespace, name: spec.Name,
		restartPolicy: spec.Spec.RestartPolicy,
		dir:           filepath.Join(a.dir, "pods", string(spec.UID)),
		ip:            ip,
		tokens:        &tokens{client: a.client, pod: spec, issued: map[string]issuedToken{}},
		done:          make(chan struct{}),
		spec:          spec.DeepCopy(),
		started:       time.Now(),
		ports:         map[int32]int{},
		grace:         time.Duration(ptr.Deref(spec.Spec.TerminationGracePeriodSeconds, 30)) * time.Second,
	}
	p.spec.Status.PodIP, p.spec.Status.HostIP = ip, nodeIP
	for i := range spec.Spec.InitContainers {
		p.init = append(p.init, newContainer(p, &spec.Spec.InitContainers[i], true))
	}
	for i := range spec.Spec.Containers {
		p.main = append(p.main, newContainer(p, &spec.Spec.Containers[i], false))
	}
	return p
}

// run runs the pod to its end, or until ctx ends; then it removes what the pod owned, except the logs.
func (p *pod) run(ctx context.Context) {
	defer close(p.done)
	defer p.remove()
	p.report()
	if !p.prepare(ctx) {
		return
	}
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := p.refresh(ctx); err != nil && ctx.Err() == nil {
			p.agent.logf("pod %s: refresh volumes: %v", p.key(), err)
		}
	}, refreshPeriod)

	failed := false
	for _, c := range p.init {
		c.run(ctx)
		if failed = c.failed(); failed || ctx.Err() != nil {
			break
		}
	}
	if !failed {
		var running sync.WaitGroup
		for _, c := range p.main {
			running.Go(func() { c.run(ctx) })
		}
		running.Wait()
	}
	p.mu.Lock()
	p.finished = true
	p.mu.Unlock()
	p.report()
}

// prepare makes the folder of the pod and waits for its token and volumes; it is false when ctx ends before.
func (p *pod) prepare(ctx context.Context) bool {
	err := wait.PollUntilContextCancel(ctx, refreshPeriod/2, true, func(ctx context.Context) (bool, error) {
		err := os.MkdirAll(p.volumes(), 0o755)
		if err == nil {
			err = writeKubeconfig(p.dir, p.namespace, p.agent.config)
		}
		if err == nil {
			err = p.refresh(ctx)
		}
		p.setWaiting(err)
		return err == nil, nil
	})
	return err == nil
}

// setWaiting shows what the pod waits for before its first container.
func (p *pod) setWaiting(err error) {
	message := ""
	if err != nil {
		message = err.Error()
	}
	p.mu.Lock()
	changed := p.waiting != message
	p.waiting = message
	p.mu.Unlock()
	if changed {
		p.report()
	}
}

// refresh brings the token and the volumes up to date.
func (p *pod) refresh(ctx context.Context) error {
	token := func(audience string, seconds int64) (string, error) { return p.tokens.get(ctx, audience, seconds) }
	text, err := token("", tokenSeconds)
	if err != nil {
		return err
	}
	if err := writeToken(p.dir, text); err != nil {
		return err
	}
	return p.agent.content.syncVolumes(p.current(), p.volumes(), token)
}

// stop ends the pod's processes and returns when nothing of it is left.
func (p *pod) stop(grace time.Duration) {
	p.mu.Lock()
	p.grace = min(p.grace, grace)
	p.mu.Unlock()
	p.cancel()
	<-p.done
}

// remove frees the pod's files and ports.
func (p *pod) remove() {
	if err := os.RemoveAll(p.dir); err != nil {
		p.agent.logf("pod %s: remove its folder: %v", p.key(), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range p.ports {
		p.agent.ports.release(port)
	}
	p.ports = map[int32]int{}
}

// update takes over a changed pod; a container whose image changed is restarted.
func (p *pod) update(spec *corev1.Pod) {
	p.mu.Lock()
	status := p.spec.Status
	p.spec = spec.DeepCopy()
	p.spec.Status = status
	p.mu.Unlock()
	for i, c := range p.init {
		c.update(&spec.Spec.InitContainers[i])
	}
	for i, c := range p.main {
		c.update(&spec.Spec.Containers[i])
	}
}

// realPort allots the loopback port behind a container port, once.
func (p *pod) realPort(containerPort int32) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if allotted, ok := p.ports[containerPort]; ok {
		return allotted, nil
	}
	allotted, err := p.agent.ports.next()
	if err != nil {
		return 0, err
	}
	p.ports[containerPort] = allotted
	return allotted, nil
}

// mappedPort is the loopback port behind a container port, if one was allotted.
func (p *pod) mappedPort(containerPort int32) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	allotted, ok := p.ports[containerPort]
	return allotted, ok
}

func (p *pod) current() *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spec.DeepCopy()
}

func (p *pod) gracePeriod() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grace
}

func (p *pod) volumes() string { return filepath.Join(p.dir, "volumes") }

func (p *pod) key() string { return p.namespace + "/" + p.name }

// report sends the pod's status to the API server.
func (p *pod) report() {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	p.agent.report(p.current(), p.status())
}

// status is the pod's status as of now.
func (p *pod) status() corev1.PodStatus {
	var init, main []corev1.ContainerStatus
	for _, c := range p.init {
		init = append(init, c.snapshot())
	}
	for _, c := range p.main {
		main = append(main, c.snapshot())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spec.Status = podStatus(statusInput{
		ip: p.ip, started: p.started, init: init, main: main, waiting: p.waiting, finished: p.finished,
		qos: p.spec.Status.QOSClass, previous: p.spec.Status.Conditions,
	})
	return *p.spec.Status.DeepCopy()
}
