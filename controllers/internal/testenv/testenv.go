// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/openmcp-project/cluster-provider-capi/api/install"
)

// AssetsVariable is the environment variable that names the folder with the binaries etcd and kube-apiserver.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// startTimeout is long enough for a machine that is busy with a build.
const startTimeout = time.Minute

// Env is a running API server.
type Env struct {
	// Config is that of an administrator.
	Config *rest.Config

	// Kubeconfig is the same as a file's content, with nothing outside of it.
	Kubeconfig []byte

	// Client reads and writes without a cache, and knows all kinds that the provider does.
	Client client.Client

	server *envtest.Environment
}

// Run starts an API server, puts it where env points to, runs the tests of a package, and stops it. It returns the exit
// code, so that a suite is
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Run(m, &env)) }
func Run(m *testing.M, env **Env) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*startTimeout)
	defer cancel()
	log.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(logWriter())))
	started, err := Start(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the test environment:", err)
		return 1
	}
	*env = started
	code := m.Run()
	if err := started.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the test environment:", err)
		return 1
	}
	return code
}

// Start starts an API server with all CRDs.
func Start(ctx context.Context) (*Env, error) {
	assets := os.Getenv(AssetsVariable)
	if assets == "" {
		return nil, errors.New(AssetsVariable + " must name the folder with the binaries etcd and kube-apiserver")
	}
	definitions, err := CRDs(ctx)
	if err != nil {
		return nil, err
	}
	server := &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
		CRDs:                     definitions,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: startTimeout},
	}
	config, err := server.Start()
	if err != nil {
		err = fmt.Errorf("start etcd and kube-apiserver of %s: %w", assets, err)
		return nil, errors.Join(err, server.Stop()) // they run when it is only the CRDs that could not be installed
	}
	env := &Env{Config: config, Kubeconfig: server.KubeConfig, server: server}
	if env.Client, err = client.New(config, client.Options{Scheme: install.Scheme()}); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return env, nil
}

// Stop stops the API server.
func (e *Env) Stop() error { return e.server.Stop() }

// Namespace makes a new namespace for a test, and returns its name.
func (e *Env) Namespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := e.Client.Create(t.Context(), namespace); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	return namespace.Name
}

// logWriter keeps the log of the controllers out of the output of tests that pass.
func logWriter() *os.File {
	if os.Getenv("TEST_LOG") != "" {
		return os.Stderr
	}
	discard, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return os.Stderr
	}
	return discard
}
