// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// resolver finds the real address behind an address in the cluster.
type resolver func(host, port string) (string, error)

// serveProxy is the API server's way into the cluster network: HTTP CONNECT on a unix socket, until ctx ends.
func serveProxy(ctx context.Context, socket string, resolve resolver) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listen for the egress proxy: %w", err)
	}
	server := &http.Server{Handler: connectHandler(resolve), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// connectHandler answers CONNECT requests; what cannot be reached is a 502 with the reason.
func connectHandler(resolve resolver) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "only CONNECT is served here", http.StatusMethodNotAllowed)
			return
		}
		target, err := dialTarget(r.Context(), r.Host, resolve)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = target.Close() }()
		hijacker, ok := w.(http.Hijacker)
		if !ok {
			http.Error(w, "connection cannot be taken over", http.StatusInternalServerError)
			return
		}
		client, buffered, err := hijacker.Hijack()
		if err != nil {
			return
		}
		defer func() { _ = client.Close() }()
		if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return
		}
		join(client, buffered, target)
	}
}

func dialTarget(ctx context.Context, address string, resolve resolver) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found := address
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		if found, err = resolve(host, port); err != nil {
			return nil, err
		}
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	return dialer.DialContext(ctx, "tcp", found)
}

// join copies both ways until one side is finished.
func join(client net.Conn, fromClient io.Reader, target net.Conn) {
	finished := make(chan struct{}, 2)
	copyTo := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		finished <- struct{}{}
	}
	go copyTo(target, fromClient)
	go copyTo(client, target)
	<-finished
}
