// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/cluster-provider-capi/test/platform/proc"
)

const nodeName = "local"

// users of the token file: those of the control plane have the roles that RBAC gives them by name.
var users = []struct{ name, group string }{
	{"admin", "system:masters"},
	{"system:kube-controller-manager", ""},
	{"system:kube-scheduler", ""},
}

// startControlPlane starts etcd and the API server, makes the kubeconfigs, and starts the rest of the control plane.
func (p *Platform) startControlPlane(ctx context.Context) error {
	etcd, err := p.startEtcd(ctx)
	if err != nil {
		return err
	}
	server, tokens, err := p.startAPIServer(ctx, etcd)
	if err != nil {
		return err
	}
	// The API server signs its own certificate when it finds none, which makes that the CA, too.
	ca, err := os.ReadFile(p.caFile())
	if err != nil {
		return err
	}
	for _, u := range users {
		if err := writeKubeconfig(p.kubeconfig(u.name), server, u.name, tokens[u.name], ca); err != nil {
			return err
		}
	}
	if p.rest, err = restConfig(p.Kubeconfig()); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	p.client, err = client.New(p.rest, client.Options{Scheme: scheme})
	return err
}

func (p *Platform) startEtcd(ctx context.Context) (string, error) {
	ports, err := freePorts(2)
	if err != nil {
		return "", err
	}
	url, peer := loopback("http", ports[0]), loopback("http", ports[1])
	return url, p.startPart(ctx, part{
		name: "etcd", binary: "etcd", core: true,
		args: []string{
			"--name=platform", "--data-dir=" + filepath.Join(p.dir, "etcd"), "--unsafe-no-fsync",
			"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=platform=" + peer,
		},
		ready: healthy(url + "/health"),
	})
}

func (p *Platform) startAPIServer(ctx context.Context, etcd string) (string, map[string]string, error) {
	ports, err := freePorts(1)
	if err != nil {
		return "", nil, err
	}
	tokens, err := p.writeTokens()
	if err != nil {
		return "", nil, err
	}
	if err := writeKey(p.serviceAccountKey()); err != nil {
		return "", nil, err
	}
	if err := os.WriteFile(p.file("egress.yaml"), []byte(p.egressConfig()), 0o600); err != nil {
		return "", nil, err
	}
	url := loopback("https", ports[0])
	return url, tokens, p.startPart(ctx, part{
		name: "kube-apiserver", binary: "kube-apiserver", core: true,
		args: []string{
			"--etcd-servers=" + etcd,
			"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]),
			"--cert-dir=" + p.file("certs"), "--token-auth-file=" + p.file("tokens.csv"), "--authorization-mode=RBAC",
			"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + p.serviceAccountKey(),
			"--service-account-signing-key-file=" + p.serviceAccountKey(),
			"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none", "--enable-aggregator-routing=true",
			"--egress-selector-config-file=" + p.file("egress.yaml"), "--kubelet-preferred-address-types=InternalIP",
			"--allow-privileged=true", "--profiling=false", "--shutdown-delay-duration=0s",
		},
		ready: healthy(url + "/readyz"),
	})
}

// egressConfig sends what the API server has to say to the cluster network through the virtual node.
func (p *Platform) egressConfig() string {
	return fmt.Sprintf(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %q}}}
`, p.socket)
}

// startNode starts controller-manager, scheduler and the virtual node, each of which waits for the others.
func (p *Platform) startNode(ctx context.Context) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	return p.startParts(ctx,
		part{
			name: "kube-controller-manager", binary: "kube-controller-manager", core: true,
			args: []string{
				"--kubeconfig=" + p.kubeconfig("system:kube-controller-manager"), "--leader-elect=false",
				"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]), "--profiling=false",
				"--service-account-private-key-file=" + p.serviceAccountKey(), "--root-ca-file=" + p.caFile(),
				"--use-service-account-credentials=true", "--kube-api-qps=200", "--kube-api-burst=300",
			},
			ready: healthy(loopback("https", ports[0]) + "/healthz"),
		},
		part{
			name: "kube-scheduler", binary: "kube-scheduler", core: true,
			args: []string{
				"--kubeconfig=" + p.kubeconfig("system:kube-scheduler"), "--leader-elect=false",
				"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[1]), "--profiling=false",
			},
			ready: healthy(loopback("https", ports[1]) + "/healthz"),
		},
		part{
			name: "virtual-node", binary: "virtual-node",
			args: []string{
				"--kubeconfig=" + p.Kubeconfig(), "--node-name=" + nodeName, "--images=" + p.imagesFile(),
				"--dir=" + p.file("node"), "--proxy-socket=" + p.socket, fmt.Sprintf("--port=%d", ports[2]),
			},
			ready: func(ctx context.Context) (bool, error) {
				node := &corev1.Node{}
				err := p.client.Get(ctx, client.ObjectKey{Name: nodeName}, node)
				return err == nil && nodeReady(node), client.IgnoreNotFound(err)
			},
		},
	)
}

// writeTokens makes a token for each user.
func (p *Platform) writeTokens() (map[string]string, error) {
	tokens := map[string]string{}
	var lines strings.Builder
	for _, u := range users {
		tokens[u.name] = rand.Text()
		fmt.Fprintf(&lines, "%s,%s,%s,%q\n", tokens[u.name], u.name, u.name, u.group)
	}
	return tokens, os.WriteFile(p.file("tokens.csv"), []byte(lines.String()), 0o600)
}

// writeKey makes the key that signs ServiceAccount tokens.
func writeKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return keyutil.WriteKey(path, pem)
}

func (p *Platform) caFile() string { return filepath.Join(p.dir, "certs", "apiserver.crt") }

func (p *Platform) serviceAccountKey() string { return p.file("service-account.key") }

func (p *Platform) kubeconfig(user string) string {
	return p.file(strings.TrimPrefix(user, "system:") + ".kubeconfig")
}

func (p *Platform) file(name string) string { return filepath.Join(p.dir, name) }

func loopback(scheme string, port int) string { return fmt.Sprintf("%s://127.0.0.1:%d", scheme, port) }

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		port, err := proc.FreePort()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
