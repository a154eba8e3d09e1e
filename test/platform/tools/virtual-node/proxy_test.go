// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestProxy(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the pod") }))
	t.Cleanup(server.Close)
	dir, err := os.MkdirTemp("", "proxy-")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		stopped <- serveProxy(ctx, socket, func(host, port string) (string, error) {
			if host == "10.244.0.2" && port == "9443" {
				return strings.TrimPrefix(server.URL, "http://"), nil
			}
			return "", fmt.Errorf("no pod has the address %s", host)
		})
	}()

	t.Run("reaches the process behind a pod's address", func(t *testing.T) {
		g := NewWithT(t)
		conn, code, _ := connect(t, socket, "10.244.0.2:9443")
		g.Expect(code).To(Equal(http.StatusOK))
		_, err := fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(io.ReadAll(conn)).To(HaveSuffix("the pod"))
	})
	t.Run("says why an address cannot be reached", func(t *testing.T) {
		g := NewWithT(t)
		_, code, body := connect(t, socket, "10.244.0.3:9443")
		g.Expect(code).To(Equal(http.StatusBadGateway))
		g.Expect(body).To(ContainSubstring("no pod has the address 10.244.0.3"))
	})
	cancel()
	NewWithT(t).Eventually(stopped).Should(Receive(BeNil()))
}

// connect asks the proxy for a connection, and returns the code and, when it is refused, the body of the reply.
func connect(t *testing.T, socket, address string) (net.Conn, int, string) {
	t.Helper()
	g := NewWithT(t)
	var conn net.Conn
	g.Eventually(func() (err error) {
		conn, err = net.Dial("unix", socket)
		return err
	}).Should(Succeed())
	t.Cleanup(func() { _ = conn.Close() })
	_, err := fmt.Fprintf(conn, "CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", address)
	g.Expect(err).NotTo(HaveOccurred())
	reply, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode == http.StatusOK {
		return conn, reply.StatusCode, ""
	}
	body, err := io.ReadAll(reply.Body)
	g.Expect(err).NotTo(HaveOccurred())
	return conn, reply.StatusCode, string(body)
}
