// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	fieldManager = client.FieldOwner("platform")
	// pollPeriod is how often the start looks at what it waits for.
	pollPeriod = 100 * time.Millisecond
	// startTimeout of one part is generous, as a busy machine takes several times as long.
	startTimeout = 2 * time.Minute
)

// crdModules are the modules whose CRDs the platform installs, with the folder that has them.
var crdModules = []struct{ module, dir string }{
	{"github.com/fluxcd/source-controller", "config/crd/bases"},
	{"github.com/fluxcd/kustomize-controller", "config/crd/bases"},
	{"github.com/fluxcd/helm-controller", "config/crd/bases"},
	{"github.com/cert-manager/cert-manager", "deploy/crds"},
}

// Apply applies the objects in a YAML text by server-side apply.
func (p *Platform) Apply(ctx context.Context, manifests string) error {
	objects, err := parse([]byte(manifests))
	if err != nil {
		return err
	}
	return p.apply(ctx, objects)
}

func (p *Platform) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		err := p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldManager, client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// applyCRDs installs the CRDs of Flux and cert-manager and waits until they are served.
func (p *Platform) applyCRDs(ctx context.Context, b *builder) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, m := range crdModules {
		dir, err := b.moduleDir(ctx, m.module)
		if err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(dir, m.dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no CRDs in %s of %s: %w", m.dir, m.module, err)
		}
		for _, file := range files {
			group.Go(func() error { return p.applyCRD(ctx, file) })
		}
	}
	return group.Wait()
}

func (p *Platform) applyCRD(ctx context.Context, file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	objects, err := parse(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := p.apply(ctx, objects); err != nil {
		return err
	}
	for _, object := range objects {
		if err := p.WaitCondition(ctx, object, "Established"); err != nil {
			return err
		}
	}
	return nil
}

// WaitCondition waits until an object, of which kind and name are read, has a condition that is True.
func (p *Platform) WaitCondition(ctx context.Context, object *unstructured.Unstructured, condition string) error {
	latest := object.DeepCopy()
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, startTimeout, true, func(ctx context.Context) (bool, error) {
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(object), latest); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return conditionTrue(latest, condition), nil
	})
	if err != nil {
		conditions, _, _ := unstructured.NestedSlice(latest.Object, "status", "conditions")
		return fmt.Errorf("%s %s is not %s: %w; its conditions: %v", object.GetKind(), object.GetName(), condition, err, conditions)
	}
	return nil
}

// conditionTrue says whether a condition is True, and of the present generation where it tells its generation.
func conditionTrue(object *unstructured.Unstructured, kind string) bool {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok || condition["type"] != kind {
			continue
		}
		seen, told := condition["observedGeneration"].(int64)
		return condition["status"] == "True" && (!told || seen >= object.GetGeneration())
	}
	return false
}

// nodeReady says whether the scheduler can use a node.
func nodeReady(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute {
			return false
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// parse reads the objects of a YAML text.
func parse(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parse manifests: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// writeKubeconfig writes a kubeconfig for one of the users in the token file.
func writeKubeconfig(path, server, user, token string, ca []byte) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["platform"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["platform"] = &clientcmdapi.Context{Cluster: "platform", AuthInfo: user}
	config.CurrentContext = "platform"
	return clientcmd.WriteToFile(*config, path)
}

// restConfig loads a kubeconfig for use by this process.
func restConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}
