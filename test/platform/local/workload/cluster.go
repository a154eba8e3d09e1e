// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openmcp-project/cluster-provider-capi/test/platform/proc"
)

// probeTimeout is how long an answer may take.
const probeTimeout = 5 * time.Second

// cluster has the processes of one cluster.
type cluster struct {
	uid      types.UID
	name     string
	dir      string
	binaries string
	lost     func()

	mu      sync.Mutex
	stopped bool

	etcd, server, manager child
	// etcdURL changes with each start of etcd.
	etcdURL string
	// admin asks the API server how it is.
	admin *http.Client
}

// ensure goes one step further, from etcd over the API server to the controller manager.
func (c *cluster) ensure(ctx context.Context, spec Spec) (State, error) {
	c.etcd.name, c.server.name, c.manager.name = "etcd", "kube-apiserver", "kube-controller-manager"
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return State{}, fmt.Errorf("make the folder of the cluster: %w", err)
	}
	if state, err := c.ensureEtcd(ctx); err != nil || !state.Ready {
		return state, err
	}
	if state, err := c.ensureServer(ctx, spec); err != nil || !state.Ready {
		return state, err
	}
	return State{Ready: true}, c.ensureManager(spec)
}

func (c *cluster) ensureEtcd(ctx context.Context) (State, error) {
	if !c.etcd.running() {
		if !c.etcd.due() {
			return State{Message: c.etcd.ended(c.dir)}, nil
		}
		client, err := proc.FreePort()
		if err != nil {
			return State{}, err
		}
		peer, err := proc.FreePort()
		if err != nil {
			return State{}, err
		}
		c.etcdURL = fmt.Sprintf("http://127.0.0.1:%d", client)
		args := etcdArgs(c.etcdURL, fmt.Sprintf("http://127.0.0.1:%d", peer))
		if err := c.etcd.start(c.dir, filepath.Join(c.binaries, "etcd"), args, c.lost); err != nil {
			return State{}, err
		}
	}
	return answers(ctx, http.DefaultClient, c.etcdURL+"/health", "etcd"), nil
}

func (c *cluster) ensureServer(ctx context.Context, spec Spec) (State, error) {
	args := serverArgs(spec, c.etcdURL)
	fingerprint := fingerprint(spec, args)
	if c.server.running() && c.server.fingerprint != fingerprint {
		c.server.stop()
		c.server.started = time.Time{}
	}
	if !c.server.running() {
		if !c.server.due() {
			return State{Message: c.server.ended(c.dir)}, nil
		}
		if err := c.writeFiles(spec); err != nil {
			return State{}, err
		}
		if err := c.server.start(c.dir, filepath.Join(c.binaries, "kube-apiserver"), args, c.lost); err != nil {
			return State{}, err
		}
		c.server.fingerprint = fingerprint
	}
	return answers(ctx, c.admin, Endpoint(spec)+"/readyz", "kube-apiserver"), nil
}

// ensureManager does not wait: what the controller manager does comes later in every cluster.
func (c *cluster) ensureManager(spec Spec) error {
	binary := filepath.Join(c.binaries, "kube-controller-manager")
	if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	args := managerArgs()
	fingerprint := fingerprint(spec, args)
	if c.manager.running() && c.manager.fingerprint != fingerprint {
		c.manager.stop()
		c.manager.started = time.Time{}
	}
	if c.manager.running() || !c.manager.due() {
		return nil
	}
	c.manager.fingerprint = fingerprint
	return c.manager.start(c.dir, binary, args, c.lost)
}

// stop ends all processes, those that use others first.
func (c *cluster) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.manager.stop()
	c.server.stop()
	c.etcd.stop()
}

// answers asks a process whether it is ready.
func answers(ctx context.Context, client *http.Client, url, name string) State {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	notReady := State{Message: name + " does not answer yet"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return notReady
	}
	response, err := client.Do(request)
	if err != nil {
		return notReady
	}
	if err := response.Body.Close(); err != nil {
		return notReady
	}
	if response.StatusCode != http.StatusOK {
		notReady.Message = fmt.Sprintf("%s is not ready: %s", name, response.Status)
		return notReady
	}
	return State{Ready: true}
}

// fingerprint tells whether a process was started with what it should have been started with.
func fingerprint(spec Spec, args []string) string {
	hash := sha256.New()
	for _, part := range append([]string{
		spec.Version, spec.AuthenticationConfig, spec.Host, string(spec.CA.Cert), string(spec.ServiceAccount.Key),
	}, args...) {
		fmt.Fprintf(hash, "%q\n", part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
