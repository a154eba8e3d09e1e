// SPDX-License-Identifier: Apache-2.0

// Package proc starts processes that cannot outlive the one that started them, and finds ports for them to listen on.
// The virtual node has the same few lines of its own, as it belongs to another module.
package proc

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// starter runs functions on one thread that lives as long as this process: Linux sends the parent-death signal when the
// thread that forked is gone, not when the process is.
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

// Process is a running command in a process group of its own.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts a command. It and all that it leaves behind in its group end with [Process.Stop]; it is killed when this
// process dies, however that happens.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	starter() <- func() { result <- cmd.Start() }
	if err := <-result; err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		// How it ended is kept in the process state.
		_ = cmd.Wait()
		p.signal(syscall.SIGKILL)
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Pid is the number of the process, and of its group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// State says how the process ended; it must not be called before [Process.Done] is closed.
func (p *Process) State() string { return p.cmd.ProcessState.String() }

// Success is true when the process ended with exit code 0; it must not be called before [Process.Done] is closed.
func (p *Process) Success() bool { return p.cmd.ProcessState.Success() }

// Stop asks the process to end, kills its group after the grace period, and returns when it has ended.
func (p *Process) Stop(grace time.Duration) {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return
	case <-time.After(grace):
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

func (p *Process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

var (
	portsMu sync.Mutex
	handed  = map[int]bool{}
)

// FreePort finds a port below the range that the kernel takes for outgoing connections, so that it stays free until its
// process listens on it. It never hands out the same one twice.
func FreePort() (int, error) {
	portsMu.Lock()
	defer portsMu.Unlock()
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		if handed[port] {
			continue
		}
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, err
		}
		handed[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("no free port between 20000 and 31999")
}
