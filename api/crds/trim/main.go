// SPDX-License-Identifier: Apache-2.0

// Command trim edits the generated CRDs in place, where controller-gen has no marker for what is wanted:
//
//   - the interval of an inline Flux source is optional, since the ProviderConfig has one for all;
//   - Kubernetes' own long descriptions below a pod's scheduling fields are left out, since they are most of the file
//     and `kubectl explain pod.spec` has them.
package main

import (
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// terse names the properties below which descriptions are left out.
var terse = []string{"affinity", "tolerations", "env", "resources", "additionalDeployments", "selector"}

// sources names the properties that hold the inline spec of a Flux source.
var sources = []string{"helm", "oci", "git", "bucket"}

func main() {
	for _, file := range os.Args[1:] {
		if err := trim(file); err != nil {
			fmt.Fprintf(os.Stderr, "trim %s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func trim(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return err
	}
	walk("", crd, false)
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), out...), 0o644)
}

// walk edits the schema node that is the property name, and all below it.
func walk(name string, node any, quiet bool) {
	switch n := node.(type) {
	case []any:
		for _, item := range n {
			walk(name, item, quiet)
		}
	case map[string]any:
		if quiet {
			if _, isText := n["description"].(string); isText {
				delete(n, "description")
			}
		}
		if required, ok := n["required"].([]any); ok && slices.Contains(sources, name) {
			dropRequired(n, required)
		}
		for key, child := range n {
			walk(key, child, quiet || slices.Contains(terse, key))
		}
	}
}

// dropRequired makes the interval of the schema node optional.
func dropRequired(node map[string]any, required []any) {
	required = slices.DeleteFunc(required, func(item any) bool { return item == "interval" })
	if len(required) == 0 {
		delete(node, "required")
		return
	}
	node["required"] = required
}
