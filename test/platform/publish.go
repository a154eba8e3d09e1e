// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	operatorVersion = "v0.29.0"
	coreVersion     = "v1.14.2"

	chartRepository = "charts/cluster-api-operator"
	coreRepository  = "capi/core"
	localRepository = "capi/local"
	setsRepository  = "cluster-provider-capi/sets"
	setsTag         = "dev"
)

// publish fills the registry with what a platform installs from one.
func (p *Platform) publish(ctx context.Context, b *builder) error {
	if err := p.publishOperatorChart(ctx, b); err != nil {
		return err
	}
	if err := p.publishCore(ctx, b); err != nil {
		return err
	}
	if err := p.publishLocal(ctx); err != nil {
		return err
	}
	sets := filepath.Join(b.root, "gitops", "sets")
	if _, err := os.Stat(sets); errors.Is(err, os.ErrNotExist) {
		p.report.state("provider set", "skipped: there is no gitops/sets")
		return nil
	}
	return p.PushFolder(ctx, setsRepository, setsTag, sets)
}

// publishOperatorChart makes the chart as the Cluster API Operator's own release does.
func (p *Platform) publishOperatorChart(ctx context.Context, b *builder) error {
	module, err := b.moduleDir(ctx, "sigs.k8s.io/cluster-api-operator")
	if err != nil {
		return err
	}
	files, err := readFolder(filepath.Join(module, "hack", "charts", "cluster-api-operator"))
	if err != nil {
		return fmt.Errorf("read the operator's chart: %w", err)
	}
	if files["templates/operator-components.yaml"], err = kustomize(filepath.Join(module, "config", "chart")); err != nil {
		return err
	}
	repository, tag, _ := strings.Cut(OperatorImage, ":")
	version := strings.TrimPrefix(operatorVersion, "v")
	if err := replace(files, "values.yaml", map[string]string{
		"gcr.io/k8s-staging-capi-operator/cluster-api-operator": repository,
		"tag: dev": "tag: " + tag,
	}); err != nil {
		return err
	}
	if err := replace(files, "Chart.yaml", map[string]string{
		"\nversion: 0.0.0": "\nversion: " + version, `appVersion: "0.0.0"`: fmt.Sprintf("appVersion: %q", version),
	}); err != nil {
		return err
	}
	return p.PushChart(ctx, chartRepository, version, "cluster-api-operator", files)
}

func (p *Platform) publishCore(ctx context.Context, b *builder) error {
	module, err := b.moduleDir(ctx, "sigs.k8s.io/cluster-api")
	if err != nil {
		return err
	}
	files := Files{}
	if files["components.yaml"], err = kustomize(filepath.Join(module, "core", "config", "default")); err != nil {
		return err
	}
	if err := replace(files, "components.yaml", map[string]string{
		"gcr.io/k8s-staging-cluster-api/cluster-api-controller:main": CoreImage,
	}); err != nil {
		return err
	}
	if files["metadata.yaml"], err = os.ReadFile(filepath.Join(module, "metadata.yaml")); err != nil {
		return err
	}
	return p.PushFiles(ctx, coreRepository, coreVersion, files)
}

// publishLocal publishes the provider "local" once per version.
func (p *Platform) publishLocal(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(p.localConfig, "components.yaml")); errors.Is(err, os.ErrNotExist) {
		p.report.state("provider local", "skipped: there is no test/platform/local/config")
		return nil
	}
	for _, version := range LocalVersions {
		if err := p.PublishLocal(ctx, version); err != nil {
			return err
		}
	}
	return nil
}

// PublishLocal publishes another version of the provider "local", with the image that it names, while the platform runs.
// The version must be of a release series in the provider's metadata.yaml.
func (p *Platform) PublishLocal(ctx context.Context, version string) error {
	files, err := localFiles(p.localConfig, version)
	if err != nil {
		return fmt.Errorf("publish %s of the provider local: %w", version, err)
	}
	if err := p.SetImage(LocalImage+":"+version, p.localImage()); err != nil {
		return err
	}
	return p.PushFiles(ctx, localRepository, version, files)
}

// localFiles are the manifests of a version of the provider "local".
func localFiles(dir, version string) (Files, error) {
	files := Files{}
	for _, name := range []string{"components.yaml", "metadata.yaml"} {
		var err error
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return files, replace(files, "components.yaml", map[string]string{":VERSION": ":" + version})
}

// Defaults is a fragment of a ProviderConfig's spec that makes the product install from this platform's registry.
func (p *Platform) Defaults() string {
	return fmt.Sprintf(`operator:
  chart:
    oci: {url: "oci://%[1]s/%[2]s", insecure: true, ref: {tag: %[3]s}}
core:
  version: %[4]s
  fetch: {oci: "http://%[1]s/%[5]s:%[4]s"}
  featureGates: {ClusterTopology: true}
providerSource:
  oci: {url: "oci://%[1]s/%[6]s", insecure: true, ref: {tag: %[7]s}}
`, p.Registry(), chartRepository, strings.TrimPrefix(operatorVersion, "v"), coreVersion, coreRepository, setsRepository, setsTag)
}

// LocalFetchConfig is the fetchConfig with which the Cluster API Operator finds a version of the provider "local".
func (p *Platform) LocalFetchConfig(version string) string {
	return fmt.Sprintf("http://%s/%s:%s", p.Registry(), localRepository, version)
}

// kustomize builds a kustomization on disk.
func kustomize(dir string) ([]byte, error) {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("kustomize %s: %w", dir, err)
	}
	return objects.AsYaml()
}

// replace changes texts in one of the files; a text that is not there is an error, as the module has changed then.
func replace(files Files, path string, texts map[string]string) error {
	for old, new := range texts {
		if !bytes.Contains(files[path], []byte(old)) {
			return fmt.Errorf("%s does not contain %q", path, old)
		}
		files[path] = bytes.ReplaceAll(files[path], []byte(old), []byte(new))
	}
	return nil
}
