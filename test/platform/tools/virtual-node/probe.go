// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// settlePeriod of running makes a container ready that has no probe which can be asked.
	settlePeriod = time.Second
	// probePeriod is shorter than any pod's own, as tests wait for readiness.
	probePeriod = 500 * time.Millisecond
	// failureLimit of failed probes in a row make a ready container unready.
	failureLimit = 3
)

// probeClient talks to servers on loopback whose certificates are for names in the cluster, as a kubelet does.
var probeClient = &http.Client{
	Timeout: time.Second,
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // kubelets do not verify probes either
	},
}

// probe keeps the readiness of a running container up to date until ctx ends.
func (c *container) probe(ctx context.Context) {
	if c.init {
		return
	}
	check := c.readinessCheck()
	if check == nil {
		select {
		case <-ctx.Done():
		case <-time.After(settlePeriod):
			c.setReady(true)
		}
		return
	}
	ticker := time.NewTicker(probePeriod)
	defer ticker.Stop()
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if check(ctx) {
			failures = 0
			c.setReady(true)
		} else if failures++; failures >= failureLimit {
			c.setReady(false)
		}
	}
}

// readinessCheck is nil when the container has no readiness probe, or one for a port that is not mapped.
func (c *container) readinessCheck() func(context.Context) bool {
	spec := c.current()
	probe := spec.ReadinessProbe
	switch {
	case probe == nil:
		return nil
	case probe.HTTPGet != nil:
		if port, ok := c.pod.mappedPort(containerPort(spec, probe.HTTPGet.Port)); ok {
			url := fmt.Sprintf("%s://127.0.0.1:%d/%s",
				strings.ToLower(string(probe.HTTPGet.Scheme)), port, strings.TrimPrefix(probe.HTTPGet.Path, "/"))
			return func(ctx context.Context) bool { return httpOK(ctx, url, probe.HTTPGet.HTTPHeaders) }
		}
	case probe.TCPSocket != nil:
		if port, ok := c.pod.mappedPort(containerPort(spec, probe.TCPSocket.Port)); ok {
			return func(context.Context) bool { return accepts(port) }
		}
	}
	return nil
}

// containerPort is the number of a port that a probe may give by name.
func containerPort(spec *corev1.Container, port intstr.IntOrString) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, p := range spec.Ports {
		if p.Name == port.StrVal {
			return p.ContainerPort
		}
	}
	return 0
}

func httpOK(ctx context.Context, url string, headers []corev1.HTTPHeader) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	for _, h := range headers {
		request.Header.Set(h.Name, h.Value)
	}
	reply, err := probeClient.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = reply.Body.Close() }()
	return reply.StatusCode >= 200 && reply.StatusCode < 400
}

func accepts(port int) bool {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
