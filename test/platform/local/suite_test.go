// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	controlplanev1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/controlplane/v1alpha1"
	infrav1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/infrastructure/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/proc"
)

const (
	assets = "KUBEBUILDER_ASSETS"
	// asProvider makes the test's binary the provider's, so that it can be killed.
	asProvider = "RUN_AS_PROVIDER"

	timeout = 90 * time.Second
)

// platform is the platform cluster.
var platform struct {
	client     client.Client
	kubeconfig string
}

func TestMain(m *testing.M) {
	if os.Getenv(asProvider) != "" {
		main()
		return
	}
	if os.Getenv(assets) == "" {
		fmt.Fprintln(os.Stderr, assets+" must name the folder with etcd and kube-apiserver")
		os.Exit(1)
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (int, error) {
	core, err := exec.Command("go", "-C", "../tools", "mod", "download", "-json", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		return 0, fmt.Errorf("find the CRDs of Cluster API: %w", err)
	}
	_, dir, _ := bytes.Cut(core, []byte(`"Dir": "`))
	dir, _, _ = bytes.Cut(dir, []byte(`"`))
	server := &envtest.Environment{
		BinaryAssetsDirectory: os.Getenv(assets), ControlPlaneStartTimeout: timeout, ControlPlaneStopTimeout: timeout,
		CRDDirectoryPaths: []string{"config/crd", filepath.Join(string(dir), "core", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
	}
	config, err := server.Start()
	if err != nil {
		return 0, fmt.Errorf("start the platform cluster: %w", err)
	}
	defer func() { _ = server.Stop() }()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme, controlplanev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return 0, err
		}
	}
	if platform.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp("", "local")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	platform.kubeconfig = filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(platform.kubeconfig, server.KubeConfig, 0o600); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// startProvider starts the provider as a process; its clusters' data is in a folder.
func startProvider(t *testing.T, data string) *proc.Process {
	t.Helper()
	g := NewWithT(t)
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	probes, err := proc.FreePort()
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(self, fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", probes))
	cmd.Env = append(os.Environ(), asProvider+"=1", "KUBECONFIG="+platform.kubeconfig, "POD_NAMESPACE=default",
		"LOCAL_BINARIES="+os.Getenv(assets), "LOCAL_DATA="+data)
	if testing.Verbose() {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	provider, err := proc.Start(cmd)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { provider.Stop(30 * time.Second) })
	return provider
}

// processes returns the numbers of the processes that run in a folder, by the name of their program.
func processes(g Gomega, folder string) map[string]int {
	found := map[string]int{}
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	g.Expect(err).NotTo(HaveOccurred())
	for _, link := range links {
		if cwd, err := os.Readlink(link); err != nil || !strings.HasPrefix(cwd, folder+"/") {
			continue
		}
		var pid int
		_, err := fmt.Sscanf(link, "/proc/%d/cwd", &pid)
		g.Expect(err).NotTo(HaveOccurred())
		if program, err := os.Readlink(filepath.Join(filepath.Dir(link), "exe")); err == nil {
			found[filepath.Base(program)] = pid
		}
	}
	return found
}
