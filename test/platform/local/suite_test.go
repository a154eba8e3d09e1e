// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/openmcp-project/cluster-provider-capi/test/platform/proc"
)

const (
	assets = "KUBEBUILDER_ASSETS"
	// asProvider makes the test's binary the provider's, so that it can be killed.
	asProvider = "RUN_AS_PROVIDER"

	providerNamespace = "local-system"

	timeout = 90 * time.Second
)

// platformCluster is a platform cluster, for which the test or the real core plays Cluster API.
type platformCluster struct {
	*envtest.Environment
	client client.Client
	// The files with the kubeconfigs of an administrator, and of the provider's ServiceAccount.
	admin, provider string
	folder          string
}

var platform *platformCluster

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

func runSuite(m *testing.M) (code int, err error) {
	if platform, err = startPlatform(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, platform.stop()) }()
	return m.Run(), nil
}

// startPlatform starts a cluster with the CRDs of Cluster API's core and of this provider.
func startPlatform(webhooks ...string) (*platformCluster, error) {
	core, err := coreConfig()
	if err != nil {
		return nil, err
	}
	for i := range webhooks {
		webhooks[i] = filepath.Join(core, webhooks[i])
	}
	p := &platformCluster{Environment: &envtest.Environment{
		BinaryAssetsDirectory: os.Getenv(assets), ControlPlaneStartTimeout: timeout, ControlPlaneStopTimeout: timeout,
		CRDDirectoryPaths: []string{"config/crd", filepath.Join(core, "crd", "bases")}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: webhooks},
	}}
	config, err := p.Start()
	if err != nil {
		return nil, fmt.Errorf("start the platform cluster: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	if p.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	if err := p.installProvider(); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// installProvider gives the provider the permissions that it has as a pod.
func (p *platformCluster) installProvider() (err error) {
	if p.folder, err = os.MkdirTemp("", "local"); err != nil {
		return err
	}
	objects, err := readObjects("config/components.yaml")
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if kind := obj.GetKind(); kind == "CustomResourceDefinition" || kind == "Deployment" {
			continue
		}
		if err := p.client.Create(context.Background(), obj); err != nil {
			return err
		}
	}
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: providerNamespace, Name: "local-manager"}}
	if err := p.client.SubResource("token").Create(context.Background(), account, token); err != nil {
		return err
	}
	config, err := clientcmd.Load(p.KubeConfig)
	if err != nil {
		return err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	p.admin, p.provider = filepath.Join(p.folder, "admin"), filepath.Join(p.folder, "provider")
	return errors.Join(os.WriteFile(p.admin, p.KubeConfig, 0o600), clientcmd.WriteToFile(*config, p.provider))
}

func (p *platformCluster) stop() error { return errors.Join(os.RemoveAll(p.folder), p.Stop()) }

// readObjects reads a file with any number of objects.
func readObjects(path string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		objects = append(objects, obj)
	}
}

// coreConfig is the folder with the manifests of Cluster API's core, of the version that platforms run.
func coreConfig() (string, error) {
	module, err := exec.Command("go", "-C", "../tools", "mod", "download", "-json", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		return "", fmt.Errorf("find the manifests of Cluster API: %w", err)
	}
	var found struct{ Dir string }
	err = json.Unmarshal(module, &found)
	return filepath.Join(found.Dir, "core", "config"), err
}

// startProvider starts the provider as a process; its clusters' data is in a folder.
func (p *platformCluster) startProvider(t *testing.T, data string) *proc.Process {
	t.Helper()
	g := NewWithT(t)
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	probes, err := proc.FreePort()
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(self, fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", probes))
	cmd.Env = append(os.Environ(), asProvider+"=1", "KUBECONFIG="+p.provider, "POD_NAMESPACE="+providerNamespace,
		"LOCAL_BINARIES="+os.Getenv(assets), "LOCAL_DATA="+data)
	return startProcess(t, cmd)
}

// startProcess stops the process when the test ends, and shows what it says when the test fails.
func startProcess(t *testing.T, cmd *exec.Cmd) *proc.Process {
	t.Helper()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	process, err := proc.Start(cmd)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		process.Stop(30 * time.Second)
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(cmd.Path), output.String())
		}
	})
	return process
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
