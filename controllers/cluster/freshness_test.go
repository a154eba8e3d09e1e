// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestWaitsForTheCacheForAWhile(t *testing.T) {
	g := NewWithT(t)
	key, now := types.NamespacedName{Namespace: "ns", Name: "team"}, time.Unix(1000, 0)
	w := written{}
	g.Expect(w.isNewerThan(key, "9", now)).To(BeFalse(), "nothing was written")
	w.remember(key, "10", now)
	g.Expect(w.isNewerThan(key, "9", now)).To(BeTrue())
	g.Expect(w.isNewerThan(key, "10", now)).To(BeFalse())
	g.Expect(w.isNewerThan(key, "11", now)).To(BeFalse())
	g.Expect(w.isNewerThan(key, "no version", now)).To(BeFalse())
	w.remember(key, "10", now.Add(time.Second))
	g.Expect(w.isNewerThan(key, "9", now.Add(maxCacheLag+1))).To(BeFalse(), "not for ever")
	w.forget(key)
	g.Expect(w.isNewerThan(key, "9", now)).To(BeFalse())
}
