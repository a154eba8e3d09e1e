// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// agent is what virtual-kubelet asks to run pods.
type agent struct {
	client  kubernetes.Interface
	config  *rest.Config
	dir     string
	table   string
	content content
	lister  corev1listers.PodLister
	ports   *ports
	ctx     context.Context
	logf    func(format string, args ...any)

	mu     sync.Mutex
	pods   map[string]*pod
	lastIP int
	notify func(*corev1.Pod)
}

var _ nodeutil.Provider = &agent{}

// CreatePod starts a pod that was bound to the node.
func (a *agent) CreatePod(_ context.Context, spec *corev1.Pod) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := spec.Namespace + "/" + spec.Name
	if _, ok := a.pods[key]; ok {
		return nil
	}
	a.lastIP++
	p := newPod(a, spec, fmt.Sprintf("10.244.%d.%d", a.lastIP/250, a.lastIP%250+1))
	ctx, cancel := context.WithCancel(a.ctx)
	p.cancel = cancel
	a.pods[key] = p
	go p.run(ctx)
	return nil
}

// UpdatePod takes over what may change in a pod. A pod of the same name that is another one replaces the old.
func (a *agent) UpdatePod(ctx context.Context, spec *corev1.Pod) error {
	p, ok := a.pod(spec.Namespace, spec.Name)
	if ok && p.current().UID == spec.UID {
		p.update(spec)
		return nil
	}
	if ok {
		p.stop(time.Second)
		a.forget(p)
	}
	return a.CreatePod(ctx, spec)
}

// DeletePod stops a pod and then takes it out of the API server: virtual-kubelet itself would wait for the whole grace
// period, also when the processes have long gone.
func (a *agent) DeletePod(_ context.Context, spec *corev1.Pod) error {
	p, ok := a.pod(spec.Namespace, spec.Name)
	if !ok {
		return errdefs.NotFoundf("pod %s/%s is not here", spec.Namespace, spec.Name)
	}
	grace := p.gracePeriod()
	if spec.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*spec.DeletionGracePeriodSeconds) * time.Second
	}
	go func() {
		p.stop(grace)
		a.forget(p)
		options := metav1.NewDeleteOptions(0)
		options.Preconditions = metav1.NewUIDPreconditions(string(spec.UID))
		err := a.client.CoreV1().Pods(spec.Namespace).Delete(a.ctx, spec.Name, *options)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && a.ctx.Err() == nil {
			a.logf("pod %s: delete: %v", p.key(), err)
		}
	}()
	return nil
}

// GetPod returns a pod that is here.
func (a *agent) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	p, ok := a.pod(namespace, name)
	if !ok {
		return nil, errdefs.NotFoundf("pod %s/%s is not here", namespace, name)
	}
	spec := p.current()
	spec.Status = p.status()
	return spec, nil
}

// GetPodStatus returns the status of a pod that is here.
func (a *agent) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	spec, err := a.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &spec.Status, nil
}

// GetPods returns all pods.
func (a *agent) GetPods(context.Context) ([]*corev1.Pod, error) {
	var all []*corev1.Pod
	for _, p := range a.all() {
		spec := p.current()
		spec.Status = p.status()
		all = append(all, spec)
	}
	return all, nil
}

// NotifyPods registers who wants to know of changed statuses.
func (a *agent) NotifyPods(_ context.Context, notify func(*corev1.Pod)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notify = notify
}

// report passes a status on, together with the metadata that the API server has now: an update of the status writes
// labels, annotations and finalizers, too.
func (a *agent) report(spec *corev1.Pod, status corev1.PodStatus) {
	latest, err := a.lister.Pods(spec.Namespace).Get(spec.Name)
	if err != nil || latest.UID != spec.UID {
		return
	}
	latest = latest.DeepCopy()
	latest.Status = status
	a.mu.Lock()
	notify := a.notify
	a.mu.Unlock()
	if notify != nil {
		notify(latest)
	}
}

// stopAll ends every pod's processes.
func (a *agent) stopAll(grace time.Duration) {
	var stopping sync.WaitGroup
	for _, p := range a.all() {
		stopping.Go(func() { p.stop(grace) })
	}
	stopping.Wait()
}

// resolve is the proxy's view of the cluster network.
func (a *agent) resolve(host, port string) (string, error) {
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return "", err
	}
	for _, p := range a.all() {
		if p.ip != host {
			continue
		}
		if mapped, ok := p.mappedPort(int32(number)); ok {
			return fmt.Sprintf("127.0.0.1:%d", mapped), nil
		}
		return "", fmt.Errorf("pod %s has no port %s", p.key(), port)
	}
	return "", fmt.Errorf("no pod has the address %s", host)
}

func (a *agent) pod(namespace, name string) (*pod, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := a.pods[namespace+"/"+name]
	return p, ok
}

func (a *agent) all() []*pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*pod
	for _, p := range a.pods {
		all = append(all, p)
	}
	return all
}

func (a *agent) forget(p *pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pods[p.key()] == p {
		delete(a.pods, p.key())
	}
}

func (a *agent) logPath(namespace, name, container string) string {
	return filepath.Join(a.dir, "logs", fmt.Sprintf("%s_%s_%s.log", namespace, name, container))
}

// GetContainerLogs serves `kubectl logs`; the other options than the number of lines are left out.
func (a *agent) GetContainerLogs(
	_ context.Context, namespace, name, container string, options api.ContainerLogOpts,
) (io.ReadCloser, error) {
	path := a.logPath(namespace, name, container)
	if options.Tail > 0 {
		return io.NopCloser(lastLines(path, options.Tail)), nil
	}
	return os.Open(path)
}

// RunInContainer is not offered: a process has no container to enter.
func (a *agent) RunInContainer(context.Context, string, string, string, []string, api.AttachIO) error {
	return errdefs.InvalidInput("a virtual node cannot exec")
}

// AttachToContainer is not offered.
func (a *agent) AttachToContainer(context.Context, string, string, string, api.AttachIO) error {
	return errdefs.InvalidInput("a virtual node cannot attach")
}

// GetStatsSummary is empty: processes are not measured.
func (a *agent) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{}, nil
}

// GetMetricsResource is empty: processes are not measured.
func (a *agent) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }

// PortForward is not offered.
func (a *agent) PortForward(context.Context, string, string, int32, io.ReadWriteCloser) error {
	return errdefs.InvalidInput("a virtual node cannot forward ports")
}
