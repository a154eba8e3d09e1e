// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package platform_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/cluster-provider-capi/test/platform"
)

// testImage is the image of this very test binary, which then does as the pod that it plays (see pod_test.go).
const testImage = "example.org/test:v1"

var (
	underTest  *platform.Platform
	kubeClient client.Client
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	// The Git server writes each request into the standard log.
	log.SetOutput(io.Discard)
	os.Exit(withPlatform(m))
}

// withPlatform runs the tests on a platform that they share.
func withPlatform(m *testing.M) int {
	self, err := os.Executable()
	if err != nil {
		return failed(err)
	}
	underTest, err = platform.Start(context.Background(), platform.Options{
		Out:    os.Stdout,
		Images: map[string]platform.Image{testImage: {Path: self, Env: map[string]string{roleVariable: rolePod}}},
	})
	if err != nil {
		return failed(err)
	}
	defer underTest.Stop()
	kubeClient, err = client.New(underTest.RESTConfig(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return failed(err)
	}
	code := m.Run()
	if err := stopAndLook(); err != nil {
		return failed(err)
	}
	return code
}

// stopAndLook stops the platform and fails when anything of it is left.
func stopAndLook() error {
	began := time.Now()
	underTest.Stop()
	left, err := processesIn(underTest.Dir())
	if err != nil || len(left) > 0 {
		return fmt.Errorf("processes of the platform go on after Stop: %q, %w", left, err)
	}
	if _, err := os.Stat(underTest.Dir()); !os.IsNotExist(err) {
		return fmt.Errorf("the folder of the platform is there after Stop: %w", err)
	}
	fmt.Printf("%-24s %-9s %6.1fs, nothing is left\n", "platform", "stopped", time.Since(began).Seconds())
	return underTest.Err()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// soon returns a gomega that waits as long as a busy machine may need.
func soon(t *testing.T) *WithT {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(2 * time.Minute)
	g.SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	return g
}

// apply applies manifests.
func apply(t *testing.T, format string, args ...any) {
	t.Helper()
	NewWithT(t).Expect(underTest.Apply(t.Context(), fmt.Sprintf(format, args...))).To(Succeed())
}

// get reads the object that a manifest names.
func get(ctx context.Context, manifest string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		return nil, err
	}
	return object, kubeClient.Get(ctx, client.ObjectKeyFromObject(object), object)
}

// awaitReady waits for the condition Ready of the object that a manifest names.
func awaitReady(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	g := NewWithT(t)
	g.Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
	g.Expect(underTest.WaitCondition(t.Context(), object, "Ready")).To(Succeed())
	object, err := get(t.Context(), manifest)
	g.Expect(err).NotTo(HaveOccurred())
	return object
}

// pods lists the pods of a namespace.
func pods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := kubeClient.List(ctx, list, client.InNamespace(namespace))
	return list.Items, err
}
