// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestProcess(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		code   int32
	}{
		"reports success":           {script: "exit 0"},
		"reports a failure":         {script: "exit 3", code: 3},
		"reports a signal as 128+n": {script: "kill -KILL $$", code: 137},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			p, err := startProcess(exec.Command("/bin/sh", "-c", test.script))
			g.Expect(err).NotTo(HaveOccurred())
			g.Eventually(p.done).Should(BeClosed())
			g.Expect(p.exitCode()).To(Equal(test.code))
		})
	}
	t.Run("kills what does not end in time, children included", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		p, err := startProcess(exec.Command("/bin/sh", "-c", "trap '' TERM; sleep 60 & wait; sleep 60"))
		g.Expect(err).NotTo(HaveOccurred())
		p.stop(context.Background(), 50*time.Millisecond)
		g.Expect(p.done).To(BeClosed())
		g.Eventually(func() error { return syscall.Kill(-p.cmd.Process.Pid, 0) }).Should(MatchError(syscall.ESRCH))
	})
}
