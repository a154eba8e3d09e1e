// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is the lifetime of a token when the pod does not ask for one.
const tokenSeconds = 3600

// tokens hands out a pod's ServiceAccount tokens and renews each at 80 % of its life, as a kubelet does.
type tokens struct {
	client kubernetes.Interface
	pod    *corev1.Pod

	mu     sync.Mutex
	issued map[string]issuedToken
}

type issuedToken struct {
	text  string
	renew time.Time
}

// get returns a token for an audience ("" is the API server's).
func (t *tokens) get(ctx context.Context, audience string, seconds int64) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := fmt.Sprintf("%s/%d", audience, seconds)
	if known, ok := t.issued[key]; ok && time.Now().Before(known.renew) {
		return known.text, nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		// Bound to the pod: a token dies with it.
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: t.pod.Name, UID: t.pod.UID},
	}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	account := t.pod.Spec.ServiceAccountName
	asked := time.Now()
	reply, err := t.client.CoreV1().ServiceAccounts(t.pod.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of service account %s: %w", account, err)
	}
	life := reply.Status.ExpirationTimestamp.Sub(asked)
	t.issued[key] = issuedToken{text: reply.Status.Token, renew: asked.Add(life * 4 / 5)}
	return reply.Status.Token, nil
}

// writeKubeconfig writes a kubeconfig that reads its token from a file beside it, so that renewal needs no restart.
func writeKubeconfig(dir, namespace string, server *rest.Config) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["platform"] = &clientcmdapi.Cluster{Server: server.Host, CertificateAuthorityData: server.CAData}
	config.AuthInfos["pod"] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(dir, "token")}
	config.Contexts["pod"] = &clientcmdapi.Context{Cluster: "platform", AuthInfo: "pod", Namespace: namespace}
	config.CurrentContext = "pod"
	return clientcmd.WriteToFile(*config, kubeconfigPath(dir))
}

func kubeconfigPath(dir string) string { return filepath.Join(dir, "kubeconfig") }

// writeToken replaces the token file in one step when the token has changed.
func writeToken(dir, token string) error {
	path := filepath.Join(dir, "token")
	if old, err := os.ReadFile(path); err == nil && string(old) == token {
		return nil
	}
	if err := os.WriteFile(path+".new", []byte(token), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
