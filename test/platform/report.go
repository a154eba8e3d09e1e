// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// reporter prints one line for each thing that a part went through.
type reporter struct {
	mu  sync.Mutex
	out io.Writer
}

func (r *reporter) state(part, state string) { r.print("%-24s %s\n", part, state) }

func (r *reporter) took(part, state string, since time.Time) {
	r.print("%-24s %-9s %6.1fs\n", part, state, time.Since(since).Seconds())
}

func (r *reporter) print(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, args...)
}
