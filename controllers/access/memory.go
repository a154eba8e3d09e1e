// SPDX-License-Identifier: Apache-2.0

package access

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// grant is what was granted last for a request.
type grant struct {
	// hash is that of all that the grant depends on.
	hash string

	// data is the hash of the Secret's data.
	data string

	// expires is when the token does.
	expires time.Time

	// renew says that the next reconciliation must issue a new token.
	renew bool
}

// memory remembers what was granted. It is empty after a restart.
type memory struct {
	mu     sync.Mutex
	grants map[types.NamespacedName]grant
}

func (m *memory) get(key types.NamespacedName) grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.grants[key]
}

func (m *memory) set(key types.NamespacedName, g grant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.grants == nil {
		m.grants = map[types.NamespacedName]grant{}
	}
	m.grants[key] = g
}

// renew makes the next reconciliation issue a new token.
func (m *memory) renew(key types.NamespacedName) {
	g := m.get(key)
	g.renew = true
	m.set(key, g)
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.grants, key)
}

// all returns a copy of what is remembered.
func (m *memory) all() map[types.NamespacedName]grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.grants)
}
