// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// Values that stand for what only a running instance knows.
const (
	renderedEnvironment = "default"
	renderedNamespace   = "openmcp-system"
)

func newRenderCommand() *cobra.Command {
	var (
		file string
		id   identityOptions
	)
	cmd := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Print the objects that ProviderConfigs stand for, without any cluster",
		Long: "render prints, as YAML and in the order in which they are applied, the Flux objects and ClusterProfiles that the " +
			"controllers make of the ProviderConfigs in a file. It needs no cluster. Other kinds in the file are passed over.",
		Example: "  cluster-provider-capi render -f providerconfig.yaml --environment prod\n" +
			"  kustomize build platform | cluster-provider-capi render -f -",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw, err := readFile(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			return render(cmd.OutOrStdout(), raw, id)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with ProviderConfigs; - is the standard input")
	_ = cmd.MarkFlagRequired("filename")
	id.addFlags(cmd.Flags())
	cmd.Flags().Lookup("provider-name").Usage = "name of the ClusterProvider; the default is the providerRef of each ProviderConfig"
	cmd.Flags().Lookup("environment").Usage += fmt.Sprintf(" (default %q)", renderedEnvironment)
	cmd.Flags().Lookup("namespace").Usage += fmt.Sprintf(", or else %q", renderedNamespace)
	return cmd
}

// readFile reads a file, or the standard input for "-".
func readFile(stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}

// render prints what the ProviderConfigs of a file stand for.
func render(out io.Writer, raw []byte, id identityOptions) error {
	configs, err := decodeConfigs(raw)
	if err != nil {
		return err
	}
	defaults, err := readDefaults(id.defaults)
	if err != nil {
		return err
	}
	var objs []client.Object
	for _, config := range configs {
		rendered, err := gitops.Render(gitops.Input{
			Instance:    cmp.Or(id.providerName, config.Spec.ProviderRef.Name),
			Namespace:   cmp.Or(id.namespace, renderedNamespace),
			Environment: cmp.Or(id.environment, renderedEnvironment),
			Config:      config.Name, Release: Version, Spec: config.Spec, Defaults: defaults,
		})
		if err != nil {
			return fmt.Errorf("ProviderConfig %s: %w", config.Name, err)
		}
		objs = append(objs, rendered...)
	}
	return gitops.WriteYAML(out, objs...)
}

// decodeStrict decodes a YAML document as the API server does with strict field validation: its errors name the path of a
// field that does not exist.
func decodeStrict(document []byte, into any) error {
	raw, err := sigsyaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(raw, into)
	return errors.Join(append(unknown, err)...)
}

// decodeConfigs returns the ProviderConfigs of a text with YAML documents. Unknown fields are errors.
func decodeConfigs(raw []byte) ([]providerv1.ProviderConfig, error) {
	var configs []providerv1.ProviderConfig
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		var kind struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := sigsyaml.Unmarshal(document, &kind); err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind) != providerv1.GroupVersion.WithKind("ProviderConfig") {
			continue
		}
		config := providerv1.ProviderConfig{}
		if err := decodeStrict(document, &config); err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if config.Name == "" || config.Spec.ProviderRef.Name == "" {
			return nil, fmt.Errorf("document %d: metadata.name and spec.providerRef.name must be set", number)
		}
		configs = append(configs, config)
	}
	if len(configs) == 0 {
		return nil, fmt.Errorf("there is no ProviderConfig (%s) in the file", providerv1.GroupVersion)
	}
	return configs, nil
}
