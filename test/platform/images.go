// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// The images that the platform knows.
const (
	OperatorImage = "registry.k8s.io/capi-operator/cluster-api-operator:" + operatorVersion
	CoreImage     = "registry.k8s.io/cluster-api/cluster-api-controller:" + coreVersion
	OpenMCPImage  = "ghcr.io/openmcp-project/images/openmcp-operator:v1.3.0"
	ProviderImage = "ghcr.io/openmcp-project/images/cluster-provider-capi:dev"
	// LocalImage lacks the tag: it is one of [LocalVersions].
	LocalImage = "ghcr.io/openmcp-project/images/cluster-api-provider-local"
)

// LocalVersions are the versions under which the provider "local" is published; both are the same binary.
var LocalVersions = []string{"v0.1.0", "v0.2.0"}

// Image says what stands for a container image. Args and Env may use the virtual node's placeholders: {{port 9443}} is
// the real loopback port behind a container port, {{dir "/path"}} the real folder behind a path in the container, and
// {{kubeconfig}} the path of the pod's kubeconfig.
type Image struct {
	// Path of the binary.
	Path string `json:"path"`
	// DefaultArgs are used when the container has neither command nor args.
	DefaultArgs []string `json:"defaultArgs,omitempty"`
	// Args are appended to the container's; of a flag that is given twice, the last one wins.
	Args []string `json:"args,omitempty"`
	// CommandArgs are appended when the container's first argument is the key.
	CommandArgs map[string][]string `json:"commandArgs,omitempty"`
	// Env is added to the container's environment and wins over it.
	Env map[string]string `json:"env,omitempty"`
}

// managerArgs are the flags that Cluster API's managers and the Cluster API Operator share.
var managerArgs = []string{
	"--webhook-port={{port 9443}}",
	`--webhook-cert-dir={{dir "/tmp/k8s-webhook-server/serving-certs"}}`,
	"--health-addr=127.0.0.1:{{port 9440}}",
	"--diagnostics-address=127.0.0.1:{{port 8443}}",
	"--insecure-diagnostics=true",
	"--profiler-address=",
	// They look for their namespace in the file system of a container only.
	"--leader-elect=false",
}

// images is the table of what was built, and of the caller's own images.
func (p *Platform) images(built map[string]bool) map[string]Image {
	bin := func(name string) string { return filepath.Join(p.bin(), name) }
	table := map[string]Image{
		OperatorImage: {Path: bin("cluster-api-operator"), Args: managerArgs},
		CoreImage:     {Path: bin("cluster-api-core"), Args: managerArgs},
		OpenMCPImage: {Path: bin("openmcp-operator"), Args: []string{"--kubeconfig={{kubeconfig}}"}, CommandArgs: map[string][]string{
			"run": {"--health-probe-bind-address=127.0.0.1:{{port 8081}}", "--metrics-bind-address=0"},
		}},
	}
	if built["cluster-provider-capi"] {
		table[ProviderImage] = Image{Path: bin("cluster-provider-capi"), CommandArgs: map[string][]string{
			"run": {"--metrics-bind-address=127.0.0.1:{{port 8080}}", "--health-probe-bind-address=127.0.0.1:{{port 8081}}"},
		}}
	}
	if built["cluster-api-provider-local"] {
		for _, version := range LocalVersions {
			table[LocalImage+":"+version] = p.localImage()
		}
	}
	maps.Copy(table, p.options.Images)
	return table
}

// localImage stands for any version of the provider "local".
func (p *Platform) localImage() Image {
	return Image{
		Path: filepath.Join(p.bin(), "cluster-api-provider-local"),
		Args: managerArgs,
		Env:  map[string]string{"LOCAL_BINARIES": p.bin(), "LOCAL_DATA": p.file("local")},
	}
}

// SetImage adds an image to those that pods can use, or changes it. Pods that wait for it find it within seconds.
func (p *Platform) SetImage(name string, image Image) error {
	p.tableMu.Lock()
	defer p.tableMu.Unlock()
	p.table[name] = image
	return p.writeImages()
}

// writeImages replaces the table that the virtual node reads, in one step.
func (p *Platform) writeImages() error {
	raw, err := yaml.Marshal(map[string]any{"images": p.table})
	if err != nil {
		return fmt.Errorf("write image table: %w", err)
	}
	if err := os.WriteFile(p.imagesFile()+".new", raw, 0o600); err != nil {
		return fmt.Errorf("write image table: %w", err)
	}
	return os.Rename(p.imagesFile()+".new", p.imagesFile())
}

func (p *Platform) imagesFile() string { return filepath.Join(p.dir, "images.yaml") }
