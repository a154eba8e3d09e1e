// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	fluxNamespace = "flux-system"

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
	// openMCP is openmcp-operator as its platform owners run it, as a pod; a new Cluster is made in the namespace of the
	// request.
	openMCP = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: openmcp-operator, namespace: openmcp-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: openmcp-operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: openmcp-operator, namespace: openmcp-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: openmcp-operator, namespace: openmcp-system}
data:
  config.yaml: |
    scheduler:
      scope: Namespaced
      purposeMappings:
        mcp:
          template: {spec: {profile: %[1]q, tenancy: Exclusive}}
        workload:
          template: {spec: {profile: %[1]q, tenancy: Shared}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: openmcp-operator, namespace: openmcp-system}
spec:
  selector: {matchLabels: {app: openmcp-operator}}
  template:
    metadata: {labels: {app: openmcp-operator}}
    spec:
      serviceAccountName: openmcp-operator
      volumes: [{name: config, configMap: {name: openmcp-operator}}]
      initContainers:
      - name: init
        image: %[3]s
        args:
        - init
        - --environment=%[2]s
        - --config=/etc/openmcp-operator/config.yaml
        - --skip-mcp-platform-service
        - --skip-helm-platform-service
        env: &env
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: POD_SERVICE_ACCOUNT_NAME, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
        volumeMounts: &mounts [{name: config, mountPath: /etc/openmcp-operator}]
      containers:
      - name: openmcp-operator
        image: %[3]s
        args: [run, --environment=%[2]s, --config=/etc/openmcp-operator/config.yaml]
        env: *env
        volumeMounts: *mounts
        ports: [{name: health, containerPort: 8081}]
        readinessProbe: {httpGet: {path: /readyz, port: health}}
`
)

// startControllers starts what runs on top of the control plane.
func (p *Platform) startControllers(ctx context.Context) error {
	parts, err := p.fluxParts()
	if err != nil {
		return err
	}
	if err := p.Apply(ctx, selfSigned); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.startOpenMCP(ctx) })
	group.Go(func() error {
		return p.startParts(ctx, append(parts, part{
			name: "cert-manager", binary: "cert-manager", args: []string{"--kubeconfig=" + p.Kubeconfig()},
			ready: func(ctx context.Context) (bool, error) { return p.issuerReady(ctx) },
		})...)
	})
	return group.Wait()
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

// startOpenMCP installs openmcp-operator, which installs its own CRDs.
func (p *Platform) startOpenMCP(ctx context.Context) error {
	began := time.Now()
	objects, err := parse(fmt.Appendf(nil, openMCP, p.options.Profile, p.options.Environment, OpenMCPImage))
	if err != nil {
		return err
	}
	if err := p.apply(ctx, objects); err != nil {
		return err
	}
	if err := p.WaitCondition(ctx, objects[len(objects)-1], "Available"); err != nil {
		return fmt.Errorf("start openmcp-operator (its log is in %s): %w", p.file("node/logs"), err)
	}
	p.report.took("openmcp-operator", "ready", began)
	return nil
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
