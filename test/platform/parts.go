// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openmcp-project/cluster-provider-capi/test/platform/proc"
)

// part is a process of the platform.
type part struct {
	name   string
	binary string
	args   []string
	env    []string
	// ready asks once whether the part works; the start goes on when it does.
	ready func(ctx context.Context) (bool, error)
	// core parts are stopped last, as the others say goodbye to them.
	core bool

	process *proc.Process
}

// healthClient asks servers on loopback that have certificates of their own.
var healthClient = &http.Client{
	Timeout: time.Second,
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // self-signed on loopback
	},
}

// healthy returns a readiness check that asks a URL.
func healthy(url string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		reply, err := healthClient.Do(request)
		if err != nil {
			// Not there yet.
			return false, nil
		}
		return reply.StatusCode == http.StatusOK, reply.Body.Close()
	}
}

// startPart starts a part and waits until it is ready. From then on, its end is the end of the platform.
func (p *Platform) startPart(ctx context.Context, t part) error {
	began := time.Now()
	logFile, err := os.Create(p.logPath(t.name))
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()
	tmp := filepath.Join(p.dir, "tmp", t.name)
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(p.bin(), t.binary), t.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = tmp, logFile, logFile
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp}, t.env...)
	if t.process, err = proc.Start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", t.name, err)
	}
	p.mu.Lock()
	p.parts = append(p.parts, t)
	p.mu.Unlock()
	if err := p.waitPart(ctx, t); err != nil {
		return fmt.Errorf("start %s: %w; the end of %s:\n%s", t.name, err, p.logPath(t.name), p.logTail(t.name))
	}
	p.report.took(t.name, "ready", began)
	go p.watchPart(t)
	return nil
}

// waitPart waits for readiness; the end of the process is an error.
func (p *Platform) waitPart(ctx context.Context, t part) error {
	return wait.PollUntilContextTimeout(ctx, pollPeriod, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-t.process.Done():
			return false, fmt.Errorf("it ended: %s", t.process.State())
		default:
		}
		return t.ready(ctx)
	})
}

// watchPart ends the platform when a part ends by itself.
func (p *Platform) watchPart(t part) {
	select {
	case <-p.stopping:
	case <-t.process.Done():
		select {
		case <-p.stopping:
		default:
			p.fail(fmt.Errorf("%s ended: %s; the end of %s:\n%s",
				t.name, t.process.State(), p.logPath(t.name), p.logTail(t.name)))
		}
	}
}

func (p *Platform) logPath(part string) string { return filepath.Join(p.dir, "logs", part+".log") }

func (p *Platform) logTail(part string) string {
	raw, err := os.ReadFile(p.logPath(part))
	if err != nil {
		return err.Error()
	}
	return lastLines(bytes.TrimSpace(raw), 15)
}
