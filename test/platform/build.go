// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	projectModule = "github.com/openmcp-project/cluster-provider-capi"

	kubernetesVersion = "v1.36.3"
	// keepFor is how long a binary that no platform starts stays in the cache.
	keepFor = 30 * 24 * time.Hour
)

// linkerFlags tell the control plane its version, which the build of a module does not know.
var linkerFlags = fmt.Sprintf("-s -w -X k8s.io/component-base/version.gitVersion=%s"+
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36", kubernetesVersion)

// tools are the binaries that are built from the tools module, by name, in an order in which each shares most with those
// before it.
var tools = []struct{ name, pkg string }{
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"etcd", "./etcd"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"virtual-node", "./virtual-node"},
	{"cluster-api-operator", "sigs.k8s.io/cluster-api-operator/cmd"},
	{"openmcp-operator", "github.com/openmcp-project/openmcp-operator/cmd/openmcp-operator"},
	{"cluster-api-core", "sigs.k8s.io/cluster-api/core"},
	{"cert-manager", "./cert-manager"},
	{"source-controller", "github.com/fluxcd/source-controller"},
	{"kustomize-controller", "github.com/fluxcd/kustomize-controller"},
	{"helm-controller", "github.com/fluxcd/helm-controller"},
}

// own are the binaries of this repository that run as pods; they are built at each start.
var own = []struct{ name, pkg string }{
	{"cluster-provider-capi", "cmd/cluster-provider-capi"},
	{"cluster-api-provider-local", "test/platform/local"},
}

// builder makes binaries and puts them into one folder.
type builder struct {
	root   string
	bin    string
	report *reporter
}

// repositoryRoot finds the folder of this repository from wherever in it the caller runs.
func repositoryRoot(ctx context.Context) (string, error) {
	root, err := goCommand(ctx, ".", "list", "-m", "-f", "{{.Dir}}", projectModule)
	if err != nil {
		return "", fmt.Errorf("find the repository (run inside it): %w", err)
	}
	return root, nil
}

func (b *builder) toolsDir() string { return filepath.Join(b.root, "test", "platform", "tools") }

// Assets builds, if need be, the binaries that controller-runtime's envtest starts, and returns the folder that has them
// and nothing else.
func Assets(ctx context.Context, out io.Writer) (string, error) {
	root, err := repositoryRoot(ctx)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache: %w", err)
	}
	b := &builder{root: root, bin: filepath.Join(cache, "cluster-provider-capi", "assets"), report: &reporter{out: out}}
	if err := os.MkdirAll(b.bin, 0o755); err != nil {
		return "", err
	}
	return b.bin, b.buildTools(ctx, func(name string) bool { return name == "etcd" || name == "kube-apiserver" })
}

// buildTools puts those tools into the folder that are wanted, from the cache where they are.
func (b *builder) buildTools(ctx context.Context, wanted func(name string) bool) error {
	cache, unlock, err := b.openCache(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	pins, err := b.pins(ctx)
	if err != nil {
		return err
	}
	for _, t := range tools {
		if !wanted(t.name) {
			continue
		}
		if err := b.buildTool(ctx, cache, pins, t.name, t.pkg); err != nil {
			return fmt.Errorf("build %s: %w", t.name, err)
		}
	}
	return removeUnused(cache)
}

// openCache returns the folder in which binaries are kept, and locks it until the second result is called.
func (b *builder) openCache(ctx context.Context) (string, func(), error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", nil, fmt.Errorf("find the cache: %w", err)
	}
	cache = filepath.Join(cache, "cluster-provider-capi")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", nil, err
	}
	unlock, err := b.lock(ctx, filepath.Join(cache, "lock"))
	return cache, unlock, err
}

// link makes the folder's link to a tool, in place of one to an older build.
func (b *builder) link(target, name string) error {
	path := filepath.Join(b.bin, name)
	if current, err := os.Readlink(path); err == nil && current == target {
		return nil
	}
	if err := os.Symlink(target, path+".new"); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Rename(path+".new", path)
}

func (b *builder) buildTool(ctx context.Context, cache string, pins []byte, name, pkg string) error {
	key, err := b.key(pins, pkg)
	if err != nil {
		return err
	}
	target := filepath.Join(cache, key, name)
	if _, err := os.Stat(target); err == nil {
		b.report.state(name, "cached")
		// The time of use is what removeUnused goes by.
		if err := os.Chtimes(filepath.Dir(target), time.Now(), time.Now()); err != nil {
			return err
		}
		return b.link(target, name)
	}
	b.report.state(name, "building")
	began := time.Now()
	if _, err := goCommand(ctx, b.toolsDir(), "build", "-trimpath", "-ldflags", linkerFlags, "-o", target+".new", pkg); err != nil {
		return err
	}
	if err := os.Rename(target+".new", target); err != nil {
		return err
	}
	b.report.took(name, "built", began)
	return b.link(target, name)
}

// buildOwn builds the binaries of this repository; a package that does not exist is skipped. It returns what it built.
// They are kept in the cache, one folder per checkout, so that nothing is linked again that has not changed.
func (b *builder) buildOwn(ctx context.Context) (map[string]bool, error) {
	cache, unlock, err := b.openCache(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	checkout := sha256.Sum256([]byte(b.root))
	cache = filepath.Join(cache, "own-"+hex.EncodeToString(checkout[:4]))
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	built := map[string]bool{}
	for _, o := range own {
		if _, err := os.Stat(filepath.Join(b.root, o.pkg)); errors.Is(err, os.ErrNotExist) {
			b.report.state(o.name, "skipped: there is no "+o.pkg)
			continue
		}
		began := time.Now()
		target := filepath.Join(cache, o.name)
		if _, err := goCommand(ctx, b.root, "build", "-trimpath", "-ldflags", "-s -w", "-o", target, "./"+o.pkg); err != nil {
			return nil, fmt.Errorf("build %s: %w", o.name, err)
		}
		// A later build replaces the file, it does not write into it: pods keep the binary of their own platform.
		if err := os.Link(target, filepath.Join(b.bin, o.name)); err != nil {
			if err := copyFile(target, filepath.Join(b.bin, o.name)); err != nil {
				return nil, err
			}
		}
		b.report.took(o.name, "built", began)
		built[o.name] = true
	}
	return built, nil
}

// copyFile copies a binary to another file system, where a link cannot go.
func copyFile(from, to string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, raw, 0o755)
}

// pins is all that decides about the binaries of foreign modules.
func (b *builder) pins(ctx context.Context) ([]byte, error) {
	version, err := goCommand(ctx, b.toolsDir(), "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return nil, err
	}
	pins := []byte(version + linkerFlags)
	for _, file := range []string{"go.mod", "go.sum"} {
		raw, err := os.ReadFile(filepath.Join(b.toolsDir(), file))
		if err != nil {
			return nil, err
		}
		pins = append(pins, raw...)
	}
	return pins, nil
}

// key names a binary's folder in the cache: the pins, and the sources when the package is one of the tools module.
func (b *builder) key(pins []byte, pkg string) (string, error) {
	hash := sha256.New()
	hash.Write(pins)
	hash.Write([]byte(pkg))
	if strings.HasPrefix(pkg, "./") {
		sources, err := filepath.Glob(filepath.Join(b.toolsDir(), pkg, "*.go"))
		if err != nil {
			return "", err
		}
		for _, source := range sources {
			if strings.HasSuffix(source, "_test.go") {
				continue
			}
			raw, err := os.ReadFile(source)
			if err != nil {
				return "", err
			}
			hash.Write(raw)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// lock keeps a second start from building the same.
func (b *builder) lock(ctx context.Context, path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	unlock := func() { _ = file.Close() }
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return unlock, nil
	}
	b.report.state("build", "waiting for another one")
	locked := make(chan error, 1)
	go func() { locked <- syscall.Flock(int(file.Fd()), syscall.LOCK_EX) }()
	select {
	case err := <-locked:
		return unlock, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// removeUnused deletes binaries of former pins.
func removeUnused(cache string) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || len(e.Name()) != 16 || time.Since(info.ModTime()) < keepFor {
			continue
		}
		if err := os.RemoveAll(filepath.Join(cache, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// moduleDir is the folder of a module that the tools are built from; it is downloaded if need be.
func (b *builder) moduleDir(ctx context.Context, module string) (string, error) {
	dir, err := goCommand(ctx, b.toolsDir(), "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil || dir != "" {
		return dir, err
	}
	if _, err := goCommand(ctx, b.toolsDir(), "mod", "download", module); err != nil {
		return "", err
	}
	return goCommand(ctx, b.toolsDir(), "list", "-m", "-f", "{{.Dir}}", module)
}

// goCommand runs the go command with the settings that all builds share, as the build cache depends on them.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, lastLines(stderr.Bytes(), 20))
	}
	return strings.TrimSpace(string(out)), nil
}

// lastLines is the end of a text.
func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
