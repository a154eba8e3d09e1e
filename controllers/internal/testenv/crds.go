// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	openmcpcrds "github.com/openmcp-project/openmcp-operator/api/crds"

	"github.com/openmcp-project/cluster-provider-capi/api/crds"
)

// toolsModule is the module, seen from the root of the repository, that requires the modules which have CRDs.
const toolsModule = "test/platform/tools"

// folders are the modules of toolsModule whose CRDs are installed, and where in the module they are.
var folders = map[string]string{
	"github.com/fluxcd/source-controller":    "config/crd/bases",
	"github.com/fluxcd/kustomize-controller": "config/crd/bases",
	"github.com/fluxcd/helm-controller":      "config/crd/bases",
	"sigs.k8s.io/cluster-api":                "core/config/crd/bases",
	"sigs.k8s.io/cluster-api-operator":       "config/crd/bases",
}

// CRDs returns the CRDs of this provider, OpenControlPlane, CAPI's core, the CAPI Operator and Flux, without conversion,
// since no webhook is there to answer.
func CRDs(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	own, err := crds.CRDs()
	if err != nil {
		return nil, fmt.Errorf("read our CRDs: %w", err)
	}
	openmcp, err := openmcpcrds.CRDs()
	if err != nil {
		return nil, fmt.Errorf("read OpenControlPlane's CRDs: %w", err)
	}
	paths, err := paths(ctx)
	if err != nil {
		return nil, err
	}
	foreign := envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true}
	if err := envtest.ReadCRDFiles(&foreign); err != nil {
		return nil, fmt.Errorf("read CRDs: %w", err)
	}
	all := append(append(own, openmcp...), foreign.CRDs...)
	for _, crd := range all {
		crd.Spec.Conversion = nil
	}
	return all, nil
}

// paths returns the folders with CRDs in the module cache.
func paths(ctx context.Context) ([]string, error) {
	root, err := output(ctx, "", "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	args := []string{"mod", "download", "-json"}
	for module := range folders {
		args = append(args, module)
	}
	modules, err := output(ctx, filepath.Join(filepath.Dir(strings.TrimSpace(root)), toolsModule), args...)
	if err != nil {
		return nil, err
	}
	var found []string
	for decoder := json.NewDecoder(strings.NewReader(modules)); ; {
		var module struct{ Path, Dir string }
		if err := decoder.Decode(&module); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go mod download says: %w", err)
		}
		found = append(found, filepath.Join(module.Dir, folders[module.Path]))
	}
}

// output runs the go command in a folder and returns what it prints.
func output(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
