// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// starter starts processes that die with this one. Linux ties the parent-death signal to the thread that forked, so
// that all are forked by one thread that lives as long as the process.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// process is a running binary in a process group of its own.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// startProcess starts a command in its own process group.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	starter() <- func() { result <- cmd.Start() }
	if err := <-result; err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		// The exit code is read from the process state.
		_ = cmd.Wait()
		p.signal(syscall.SIGKILL)
		close(p.done)
	}()
	return p, nil
}

// signal reaches the whole group: children that the process left behind, too.
func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// stop asks the process to end and kills it after the grace period, or when the context ends.
func (p *process) stop(ctx context.Context, grace time.Duration) {
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// exitCode is the code as a kubelet reports it: 128 plus the signal that ended the process.
func (p *process) exitCode() int32 {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(p.cmd.ProcessState.ExitCode())
}
