// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestParse(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("LOCAL_BINARIES", "")
	_, err := parse(nil)
	g.Expect(err).To(MatchError(ContainSubstring("LOCAL_BINARIES")))

	t.Setenv("LOCAL_BINARIES", "/bin")
	t.Setenv("LOCAL_DATA", "/data")
	o, err := parse(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.probes).To(Equal(":9440"))
	g.Expect(o.metrics).To(Equal("0"))

	o, err = parse([]string{
		"--health-probe-bind-address=:9440", "--leader-elect", "--v=2", "--health-addr=127.0.0.1:1", "--insecure-diagnostics=true",
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.probes).To(Equal("127.0.0.1:1"))
	g.Expect(o.leaderElection).To(BeTrue())
}
