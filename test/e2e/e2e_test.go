// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e tests the provider on a real platform: one that it starts itself, or the one that E2E_KUBECONFIG names.
package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openmcp-project/cluster-provider-capi/test/platform"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/local/config"
	"github.com/openmcp-project/cluster-provider-capi/test/scenario"
)

// target is the platform that the tests run on.
var target scenario.Target

func TestMain(m *testing.M) {
	ctx, cancel := context.WithCancel(context.Background())
	stop, err := prepare(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		cancel()
		os.Exit(1)
	}
	code := m.Run()
	stop()
	cancel()
	os.Exit(code)
}

// prepare finds or starts the platform, and returns what stops it.
func prepare(ctx context.Context) (func(), error) {
	path := os.Getenv("E2E_KUBECONFIG")
	if path == "" {
		p, err := platform.Start(ctx, platform.Options{Out: os.Stdout})
		if err != nil {
			return nil, err
		}
		target = scenario.OnPlatform(p)
		target.Out = os.Stdout
		return p.Stop, nil
	}
	rest, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("E2E_KUBECONFIG: %w", err)
	}
	target = scenario.Target{
		Config: rest, Image: os.Getenv("E2E_IMAGE"), Local: os.Getenv("E2E_LOCAL"),
		ClusterClass: config.ClusterClass, Out: os.Stdout,
	}
	if file := os.Getenv("E2E_DEFAULTS"); file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("E2E_DEFAULTS: %w", err)
		}
		target.Defaults = string(raw)
	}
	return func() {}, nil
}

// TestMainJob is the whole chain, from the ClusterProvider to a ConfigMap in a new cluster, and back.
func TestMainJob(t *testing.T) {
	NewWithT(t).Expect(scenario.Run(t.Context(), target)).To(Succeed())
}

// TestMistakes is what people get wrong, what they are told, and that they can mend it. It installs everything again
// after TestMainJob has removed it.
func TestMistakes(t *testing.T) {
	NewWithT(t).Expect(scenario.RunMistakes(t.Context(), target)).To(Succeed())
}

// TestProviderSets is the life of a provider set that a platform owner keeps in Git.
func TestProviderSets(t *testing.T) {
	if target.Commit == nil {
		t.Skip("the platform has no Git server")
	}
	NewWithT(t).Expect(scenario.RunSets(t.Context(), target)).To(Succeed())
}
