// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// ports hands out free ports below the range that the kernel takes for outgoing connections: a port that is found free
// stays free until its process listens on it, unless another platform draws the same one in that moment.
type ports struct {
	mu    sync.Mutex
	taken map[int]bool
}

func (p *ports) next() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		if p.taken[port] {
			continue
		}
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, err
		}
		p.taken[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("no free port between 20000 and 31999")
}

func (p *ports) release(port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, port)
}
