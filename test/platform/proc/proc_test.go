// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestStopKillsWhatDoesNotEndInTimeAndItsChildren(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	p, err := Start(exec.Command("/bin/sh", "-c", "trap '' TERM; sleep 60 & wait; sleep 60"))
	g.Expect(err).NotTo(HaveOccurred())
	p.Stop(50 * time.Millisecond)
	g.Expect(p.Done()).To(BeClosed())
	g.Expect(p.Success()).To(BeFalse())
	g.Eventually(func() error { return syscall.Kill(-p.Pid(), 0) }).Should(MatchError(syscall.ESRCH))
}

func TestSuccess(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	p, err := Start(exec.Command("/bin/sh", "-c", "exit 0"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(p.Done()).Should(BeClosed())
	g.Expect(p.Success()).To(BeTrue())
}

func TestFreePortNeverGivesOneTwice(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	seen := map[int]bool{}
	for range 50 {
		port, err := FreePort()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen).NotTo(HaveKey(port))
		seen[port] = true
	}
}
