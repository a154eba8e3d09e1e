// SPDX-License-Identifier: Apache-2.0

// Package workload runs the processes of clusters: for each an etcd, an API server, and a controller manager where its
// binary is there. They end with this process, however that happens, and are started again, with the same data, by
// [Host.Ensure]. It knows nothing of Cluster API's kinds; start reading at [Host].
package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/certs"
)

// Spec is what a cluster's processes are to be.
type Spec struct {
	// UID of the owner: data of an earlier one with the same name is never used.
	UID types.UID
	// Host and Port are where the API server listens, the same for the whole life of the cluster.
	Host string
	Port int32
	// Version is what the API server is restarted for when it changes.
	Version string
	// CA signs the certificates of the API server and of its clients.
	CA *certs.KeyPair
	// ServiceAccount has the keys for the tokens of ServiceAccounts.
	ServiceAccount *certs.KeyPair
	// AuthenticationConfig is an AuthenticationConfiguration as YAML, or empty.
	AuthenticationConfig string
	// Verbose makes the API server log more.
	Verbose bool
}

// State is what a cluster's processes are.
type State struct {
	// Ready is true when the API server answers, with all that the Spec says.
	Ready bool
	// Message says what is awaited or wrong.
	Message string
}

// Host runs clusters. Its methods can be called at the same time, for the same cluster, too.
type Host struct {
	binaries string
	data     string
	changed  chan types.NamespacedName

	mu       sync.Mutex
	lock     *os.File
	stopped  bool
	clusters map[types.NamespacedName]*cluster
}

// NewHost returns a Host that takes the binaries etcd, kube-apiserver and kube-controller-manager from one folder, and
// keeps the data of all clusters in another.
func NewHost(binaries, data string) (*Host, error) {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(binaries, name)); err != nil {
			return nil, fmt.Errorf("find the binaries of clusters: %w", err)
		}
	}
	// The processes have folders of their own as working directory.
	binaries, err := filepath.Abs(binaries)
	if err != nil {
		return nil, err
	}
	data, err = filepath.Abs(data)
	if err != nil {
		return nil, err
	}
	return &Host{
		binaries: binaries, data: data, changed: make(chan types.NamespacedName, 100),
		clusters: map[types.NamespacedName]*cluster{},
	}, nil
}

// Changed tells which clusters lost a process.
func (h *Host) Changed() <-chan types.NamespacedName { return h.changed }

// Ensure starts what does not run of a cluster, restarts what has to change, and returns without waiting until it is
// ready: it is to be called again until then, and after each message of [Host.Changed].
func (h *Host) Ensure(ctx context.Context, key types.NamespacedName, spec Spec) (State, error) {
	c, err := h.cluster(key, spec.UID)
	if err != nil {
		return State{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return State{}, errStopped
	}
	return c.ensure(ctx, spec)
}

// Remove stops a cluster's processes and removes its data.
func (h *Host) Remove(key types.NamespacedName, uid types.UID) error {
	c, err := h.cluster(key, uid)
	if err != nil {
		return err
	}
	c.stop()
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("remove the data of %s: %w", key, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clusters[key] == c {
		delete(h.clusters, key)
	}
	return nil
}

// Start waits until the context is done, and stops all clusters then; their data stays.
func (h *Host) Start(ctx context.Context) error {
	<-ctx.Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	var all sync.WaitGroup
	for _, c := range h.clusters {
		all.Go(c.stop)
	}
	all.Wait()
	if h.lock == nil {
		return nil
	}
	return h.lock.Close()
}

// ErrTaken is returned as long as another process runs the clusters in the same folder.
var ErrTaken = errors.New("another process runs the clusters")

var errStopped = errors.New("the cluster's processes are stopped")

// cluster finds or makes what is known of a cluster.
func (h *Host) cluster(key types.NamespacedName, uid types.UID) (*cluster, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return nil, errStopped
	}
	if err := h.takeLock(); err != nil {
		return nil, err
	}
	if c := h.clusters[key]; c != nil && c.uid == uid {
		return c, nil
	} else if c != nil {
		c.stop()
	}
	c := &cluster{
		uid: uid, name: key.Name, binaries: h.binaries,
		dir:  filepath.Join(h.data, fmt.Sprintf("%s_%s_%s", key.Namespace, key.Name, uid)),
		lost: func() { h.changed <- key },
	}
	h.clusters[key] = c
	return c, nil
}

// takeLock keeps two providers from running the same clusters. It does not wait, so that a provider that is to replace
// another one is healthy before that has ended.
func (h *Host) takeLock() error {
	if h.lock != nil {
		return nil
	}
	if err := os.MkdirAll(h.data, 0o700); err != nil {
		return fmt.Errorf("make the folder of all clusters: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(h.data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the folder of all clusters: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("%w: %s is locked: %w", ErrTaken, h.data, err), file.Close())
	}
	h.lock = file
	return nil
}
