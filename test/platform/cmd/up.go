// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openmcp-project/cluster-provider-capi/test/platform"
)

// stopTimeout is how long `down` waits for the end of the platform.
const stopTimeout = time.Minute

func newUpCommand() *cobra.Command {
	var o platform.Options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a platform and run it until Ctrl-C, or until `down`",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			return up(cmd, o)
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", stateDir(), "folder of the platform")
	cmd.Flags().StringVar(&o.Environment, "environment", "", "environment of openmcp-operator (default e2e)")
	cmd.Flags().StringVar(&o.Profile, "profile", "", "ClusterProfile for new Clusters (default e2e.capi.local.small)")
	return cmd
}

// up runs a platform until it ends.
func up(cmd *cobra.Command, o platform.Options) error {
	release, err := claim(o.Dir)
	if err != nil {
		return err
	}
	defer release()
	p, err := platform.Start(cmd.Context(), o)
	if err != nil {
		return err
	}
	defer p.Stop()
	cmd.Printf(`
The platform runs. In another terminal:

  export KUBECONFIG=%s
  kubectl get pods -A

Registry (plain HTTP)  %s
Git                    %s
Logs                   %s (parts), %s (pods)
The product's ProviderConfig takes this to install from here:

%s
Ctrl-C ends it all, and so does: go run ./test/platform/cmd down%s
`, p.Kubeconfig(), p.Registry(), p.GitURL(), filepath.Join(p.Dir(), "logs"), filepath.Join(p.Dir(), "node", "logs"),
		indent(p.Defaults()), dirFlag(o.Dir))
	<-p.Done()
	return p.Err()
}

// dirFlag is what `down` needs to find a folder.
func dirFlag(dir string) string {
	if dir == stateDir() {
		return ""
	}
	return " --dir " + dir
}

func newDownCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the platform that `up` started",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return down(cmd, dir) },
	}
	cmd.Flags().StringVar(&dir, "dir", stateDir(), "folder of the platform")
	return cmd
}

// down ends the process that holds the lock of a folder.
func down(cmd *cobra.Command, dir string) error {
	raw, err := os.ReadFile(pidFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		cmd.Println("no platform runs in", dir)
		return nil
	}
	if err != nil {
		return err
	}
	// A pid alone may be another process by now; the lock is held by the platform's only.
	if release, err := claim(dir); err == nil {
		release()
		cmd.Println("no platform runs in", dir)
		return nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return fmt.Errorf("read %s: %w", pidFile(dir), err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	return wait.PollUntilContextTimeout(cmd.Context(), 100*time.Millisecond, stopTimeout, true,
		func(context.Context) (bool, error) {
			release, err := claim(dir)
			if err != nil {
				return false, nil
			}
			release()
			return true, nil
		})
}

// claim makes this process the one that runs a platform in a folder, and says so in a file beside it.
func claim(dir string) (func(), error) {
	path := pidFile(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("a platform runs in %s already: %w", dir, err)
	}
	if err := file.Truncate(0); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(file, os.Getpid()); err != nil {
		return nil, err
	}
	return func() {
		_ = os.Remove(path)
		_ = file.Close()
	}, nil
}

func pidFile(dir string) string { return strings.TrimRight(dir, "/") + ".pid" }

// stateDir is the same for every start, so that `down` finds what `up` started.
func stateDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "cluster-provider-capi", "platform")
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}
