// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// cacheLag is how long the cache is given to see what was written a moment ago, before it is looked at again.
	cacheLag = 50 * time.Millisecond

	// maxCacheLag is how long the cache is waited for at all. Versions that come from a restored etcd may never be reached.
	maxCacheLag = 2 * time.Second
)

// written remembers which version each Cluster had after it was reconciled last. What writes to a CAPI Cluster and to its
// Cluster is called again at once, and would do its writes twice with a Cluster from before them.
type written struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]writtenVersion
}

type writtenVersion struct {
	version string
	at      time.Time
}

// remember remembers that a Cluster has a version now.
func (w *written) remember(key types.NamespacedName, version string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.versions == nil {
		w.versions = map[types.NamespacedName]writtenVersion{}
	}
	if w.versions[key].version != version {
		w.versions[key] = writtenVersion{version, now}
	}
}

// forget drops what is remembered of a Cluster that is gone.
func (w *written) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, key)
}

// isNewerThan says whether a Cluster that the cache has in a version has a newer one, and that is worth waiting for.
func (w *written) isNewerThan(key types.NamespacedName, version string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.versions[key]
	if !ok || now.Sub(last.at) > maxCacheLag {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, last.version)
	return err == nil && order < 0
}
