// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/openmcp-project/cluster-provider-capi/test/platform/proc"
)

const (
	// restartAfter is the shortest time between two starts of the same process.
	restartAfter = time.Second
	// stopGrace is how long a process may take to end.
	stopGrace = 5 * time.Second
	// maxLog is the size above which a log begins anew with the next start.
	maxLog = 10 << 20
	// maxLine is how much of a log's last line is worth a message.
	maxLine = 300
)

// child is one process of a cluster that is started again and again.
type child struct {
	name string
	// fingerprint of what it was started with.
	fingerprint string

	process *proc.Process
	started time.Time
}

// running is true while the process has not ended.
func (c *child) running() bool {
	if c.process == nil {
		return false
	}
	select {
	case <-c.process.Done():
		return false
	default:
		return true
	}
}

// due is true when the process may be started again.
func (c *child) due() bool { return time.Since(c.started) >= restartAfter }

// start starts the process with a log of its own; lost is called when it ends.
func (c *child) start(dir, binary string, args []string, lost func()) error {
	log, err := openLog(filepath.Join(dir, c.name+".log"))
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", c.name, err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	c.started = time.Now()
	if c.process, err = proc.Start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	go func(process *proc.Process) {
		<-process.Done()
		lost()
	}(c.process)
	return nil
}

// stop returns when the process has ended.
func (c *child) stop() {
	if c.running() {
		c.process.Stop(stopGrace)
	}
}

// ended says how the process ended, with the last line of its log.
func (c *child) ended(dir string) string {
	if c.process == nil {
		return fmt.Sprintf("%s is about to start", c.name)
	}
	return fmt.Sprintf("%s ended (%s): %s", c.name, c.process.State(), lastLine(filepath.Join(dir, c.name+".log")))
}

func openLog(path string) (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(path, flags, 0o600)
}

// lastLine is the end of a log, or empty when it cannot be read.
func lastLine(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil {
		if _, err := file.Seek(max(0, info.Size()-4096), io.SeekStart); err != nil {
			return ""
		}
	}
	tail, err := io.ReadAll(file)
	if err != nil {
		return ""
	}
	tail = bytes.TrimSpace(tail)
	line := bytes.ToValidUTF8(tail[bytes.LastIndexByte(tail, '\n')+1:], nil)
	return string(line[:min(len(line), maxLine)])
}
