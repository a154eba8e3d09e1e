// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	fluxNamespace = "flux-system"
	ocpNamespace  = "openmcp-system"

	namespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: flux-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: cert-manager}
---
apiVersion: v1
kind: Namespace
metadata: {name: openmcp-system}
`
	// selfSigned shows that cert-manager works, and is there for whoever needs an issuer.
	selfSigned = `
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: selfsigned}
spec: {selfSigned: {}}
`
	// operatorPod stands for openmcp-operator, which reads its own image from its pod. No scheduler has that name.
	operatorPod = `
apiVersion: v1
kind: Pod
metadata: {name: openmcp-operator, namespace: openmcp-system}
spec:
  schedulerName: none
  automountServiceAccountToken: false
  containers:
  - {name: openmcp-operator, image: "ghcr.io/openmcp-project/images/openmcp-operator:v1.3.0"}
`
	// schedulerConfig makes a new Cluster in the namespace of the request.
	schedulerConfig = `
scheduler:
  scope: Namespaced
  purposeMappings:
    mcp:
      template: {spec: {profile: %[1]q, tenancy: Exclusive}}
    workload:
      template: {spec: {profile: %[1]q, tenancy: Shared}}
`
)

// startControllers starts what runs on top of the control plane.
func (p *Platform) startControllers(ctx context.Context) error {
	parts, err := p.fluxParts()
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	if err := p.initOpenMCP(ctx); err != nil {
		return err
	}
	if err := p.Apply(ctx, selfSigned); err != nil {
		return err
	}
	return p.startParts(ctx, append(parts,
		part{
			name: "cert-manager", binary: "cert-manager", args: []string{"--kubeconfig=" + p.Kubeconfig()},
			ready: func(ctx context.Context) (bool, error) { return p.issuerReady(ctx) },
		},
		part{
			name: "openmcp-operator", binary: "openmcp-operator", env: openMCPEnv(),
			args: append(p.openMCPArgs("run"),
				fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[0]), "--metrics-bind-address=0"),
			ready: healthy(loopback("http", ports[0]) + "/readyz"),
		},
	)...)
}

// fluxParts are Flux's controllers; they react fast, as tests wait for them.
func (p *Platform) fluxParts() ([]part, error) {
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	storage := fmt.Sprintf("127.0.0.1:%d", ports[3])
	if err := os.MkdirAll(p.file("flux"), 0o755); err != nil {
		return nil, err
	}
	fast := []string{"--requeue-dependency=2s"}
	extra := map[string][]string{
		"source-controller": append([]string{
			"--storage-path=" + p.file("flux"), "--storage-addr=" + storage, "--storage-adv-addr=" + storage,
		}, fast...),
		"kustomize-controller": append([]string{"--no-remote-bases=true"}, fast...),
		"helm-controller":      fast,
	}
	var parts []part
	for i, name := range []string{"source-controller", "kustomize-controller", "helm-controller"} {
		parts = append(parts, part{
			name: name, binary: name,
			args: append([]string{
				"--enable-leader-election=false", "--watch-all-namespaces", "--events-addr=", "--metrics-addr=127.0.0.1:0",
				fmt.Sprintf("--health-addr=127.0.0.1:%d", ports[i]), "--min-retry-delay=200ms", "--max-retry-delay=5s",
			}, extra[name]...),
			env:   []string{"KUBECONFIG=" + p.Kubeconfig(), "RUNTIME_NAMESPACE=" + fluxNamespace},
			ready: healthy(loopback("http", ports[i]) + "/readyz"),
		})
	}
	return parts, nil
}

// initOpenMCP installs openmcp-operator's CRDs; its own command for that needs a pod to look at.
func (p *Platform) initOpenMCP(ctx context.Context) error {
	config := fmt.Sprintf(schedulerConfig, p.options.Profile)
	if err := os.WriteFile(p.file("openmcp.yaml"), []byte(config), 0o600); err != nil {
		return err
	}
	// Until controller-manager has made the namespace's ServiceAccount, no pod is admitted.
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, startTimeout, true, func(ctx context.Context) (bool, error) {
		return p.Apply(ctx, operatorPod) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("create the pod of openmcp-operator: %w", err)
	}
	return p.startPart(ctx, part{
		name: "openmcp-operator init", binary: "openmcp-operator", env: openMCPEnv(), once: true,
		args: append(p.openMCPArgs("init"), "--skip-mcp-platform-service", "--skip-helm-platform-service"),
	})
}

func (p *Platform) openMCPArgs(command string) []string {
	return []string{
		command, "--kubeconfig=" + p.Kubeconfig(), "--environment=" + p.options.Environment, "--config=" + p.file("openmcp.yaml"),
	}
}

func openMCPEnv() []string {
	return []string{
		"POD_NAME=openmcp-operator", "POD_NAMESPACE=" + ocpNamespace, "POD_SERVICE_ACCOUNT_NAME=openmcp-operator", "POD_IP=127.0.0.1",
	}
}

func (p *Platform) issuerReady(ctx context.Context) (bool, error) {
	objects, err := parse([]byte(selfSigned))
	if err != nil {
		return false, err
	}
	issuer := &unstructured.Unstructured{}
	issuer.SetGroupVersionKind(objects[0].GroupVersionKind())
	if err := p.client.Get(ctx, keyOf(objects[0]), issuer); err != nil {
		return false, err
	}
	return conditionTrue(issuer, "Ready"), nil
}
