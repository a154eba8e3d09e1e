// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fluxcd/pkg/gittestserver"
	"github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// marker is the file that tells a platform's folder from any other.
const marker = ".platform"

// Options say what [Start] starts, and where.
type Options struct {
	// Dir is the folder of the platform: logs, kubeconfigs, data. What an earlier platform left there is removed. Empty
	// means a temporary folder, which Stop removes.
	Dir string
	// Out is where the progress is printed; nil means nowhere.
	Out io.Writer
	// Environment is the name of the environment that openmcp-operator serves; the default is "e2e".
	Environment string
	// Profile is the ClusterProfile that ClusterRequests of the purposes "mcp" and "workload" get; the default is
	// "e2e.capi.local.small".
	Profile string
	// Images are known to the virtual node besides those of the platform.
	Images map[string]Image
}

// Platform is a running platform.
type Platform struct {
	options Options
	dir     string
	socket  string
	report  *reporter
	rest    *rest.Config
	client  client.Client

	registryServer   *http.Server
	registryListener net.Listener
	git              *gittestserver.GitServer

	stopping chan struct{}
	stopOnce sync.Once
	done     chan struct{}

	// localConfig is the folder with the manifests of the provider "local".
	localConfig string

	tableMu sync.Mutex
	table   map[string]Image

	mu    sync.Mutex
	parts []part
	err   error
}

// Start builds what is missing and starts a platform. It ends with [Platform.Stop], with ctx, and with this process.
func Start(ctx context.Context, o Options) (*Platform, error) {
	p, err := newPlatform(o)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		p.Stop()
		return nil, err
	}
	context.AfterFunc(ctx, p.Stop)
	return p, nil
}

func newPlatform(o Options) (*Platform, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Environment == "" {
		o.Environment = "e2e"
	}
	if o.Profile == "" {
		o.Profile = "e2e.capi.local.small"
	}
	dir, err := makeDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("make the platform's folder: %w", err)
	}
	socket, err := socketPath(dir)
	if err != nil {
		return nil, fmt.Errorf("make the platform's folder: %w", err)
	}
	return &Platform{
		options: o, dir: dir, socket: socket, report: &reporter{out: o.Out},
		stopping: make(chan struct{}), done: make(chan struct{}),
	}, nil
}

// socketPath is in the platform's folder, unless that makes it longer than a unix socket's path may be.
func socketPath(dir string) (string, error) {
	const limit = 100
	if path := filepath.Join(dir, "egress.sock"); len(path) <= limit {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "platform-")
	return filepath.Join(dir, "egress.sock"), err
}

// makeDir makes an empty folder for a platform, and refuses one that has something else in it.
func makeDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "platform-")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
			return "", fmt.Errorf("%s is not empty and no platform's: %w", dir, err)
		}
		for _, e := range entries {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return "", err
			}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, marker), nil, 0o600)
}

// start is the order of things.
func (p *Platform) start(ctx context.Context) error {
	began := time.Now()
	for _, dir := range []string{"bin", "logs", "git", "local"} {
		if err := os.MkdirAll(p.file(dir), 0o755); err != nil {
			return err
		}
	}
	root, err := repositoryRoot(ctx)
	if err != nil {
		return err
	}
	b := &builder{root: root, bin: p.bin(), report: p.report}
	if err := b.buildTools(ctx, func(string) bool { return true }); err != nil {
		return err
	}
	built, err := b.buildOwn(ctx)
	if err != nil {
		return err
	}
	p.localConfig = filepath.Join(root, "test", "platform", "local", "config")
	p.table = p.images(built)
	if err := p.writeImages(); err != nil {
		return err
	}
	if err := p.startServers(); err != nil {
		return err
	}
	if err := p.startControlPlane(ctx); err != nil {
		return err
	}
	if err := p.fill(ctx, b); err != nil {
		return err
	}
	if err := p.startControllers(ctx); err != nil {
		return err
	}
	p.report.took("platform", "ready", began)
	return nil
}

// fill brings in, at the same time, what the controllers need.
func (p *Platform) fill(ctx context.Context, b *builder) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.startNode(ctx) })
	group.Go(func() error {
		if err := p.Apply(ctx, namespaces); err != nil {
			return err
		}
		began := time.Now()
		if err := p.applyCRDs(ctx, b); err != nil {
			return err
		}
		p.report.took("CRDs", "ready", began)
		return nil
	})
	group.Go(func() error {
		began := time.Now()
		if err := p.publish(ctx, b); err != nil {
			return err
		}
		p.report.took("artifacts", "published", began)
		return nil
	})
	return group.Wait()
}

// startServers starts what runs in this very process.
func (p *Platform) startServers() error {
	began := time.Now()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start the registry: %w", err)
	}
	p.registryListener = listener
	p.registryServer = &http.Server{
		Handler:           registry.New(registry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() {
		if err := p.registryServer.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.fail(fmt.Errorf("registry: %w", err))
		}
	}()
	p.report.took("registry", "ready", began)
	return p.startGit()
}

// startParts starts parts at the same time.
func (p *Platform) startParts(ctx context.Context, parts ...part) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, t := range parts {
		group.Go(func() error { return p.startPart(ctx, t) })
	}
	return group.Wait()
}

// Stop ends everything and returns when it has ended. Calling it again does no harm.
func (p *Platform) Stop() {
	p.stopOnce.Do(func() {
		close(p.stopping)
		p.stopParts(func(t part) bool { return !t.core }, 8*time.Second)
		p.stopParts(func(t part) bool { return t.core && t.name != "etcd" }, 2*time.Second)
		p.stopParts(func(t part) bool { return t.name == "etcd" }, 2*time.Second)
		if p.registryServer != nil {
			_ = p.registryServer.Close()
		}
		if p.git != nil {
			p.git.StopHTTP()
		}
		if dir := filepath.Dir(p.socket); dir != p.dir {
			_ = os.RemoveAll(dir)
		}
		if p.options.Dir == "" {
			_ = os.RemoveAll(p.dir)
		}
		close(p.done)
	})
	<-p.done
}

func (p *Platform) stopParts(which func(part) bool, grace time.Duration) {
	p.mu.Lock()
	parts := p.parts
	p.mu.Unlock()
	var stopping sync.WaitGroup
	for _, t := range parts {
		if which(t) {
			stopping.Go(func() { t.process.Stop(grace) })
		}
	}
	stopping.Wait()
}

// fail ends the platform for a reason.
func (p *Platform) fail(err error) {
	p.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	p.mu.Unlock()
	p.report.print("%v\n", err)
	p.Stop()
}

// Done is closed when the platform has ended.
func (p *Platform) Done() <-chan struct{} { return p.done }

// Err is why the platform ended by itself, nil if it did not.
func (p *Platform) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Dir is the platform's folder; logs of its parts are in logs, those of pods in node/logs.
func (p *Platform) Dir() string { return p.dir }

// Kubeconfig is the path of the administrator's kubeconfig.
func (p *Platform) Kubeconfig() string { return p.kubeconfig("admin") }

// RESTConfig is the administrator's, without client-side rate limits.
func (p *Platform) RESTConfig() *rest.Config { return rest.CopyConfig(p.rest) }

// Registry is the host and port of the OCI registry, which speaks plain HTTP.
func (p *Platform) Registry() string { return p.registryListener.Addr().String() }

func (p *Platform) bin() string { return p.file("bin") }

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }
