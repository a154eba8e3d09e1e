// SPDX-License-Identifier: Apache-2.0

// Command trim edits the generated CRDs in place, where controller-gen has no marker for what is wanted:
//
//   - the interval of an inline Flux source is optional, since the ProviderConfig has one for all;
//   - Kubernetes' own long descriptions below a pod's scheduling fields are left out, since they are most of the file
//     and `kubectl explain pod.spec` has them;
//   - CAPI's CEL rules on each condition of a machine health check are left out: below a list of profiles with a list of
//     machine deployments they exceed what the API server lets rules cost. CAPI checks them when a Cluster is made.
package main

import (
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// terse names the properties below which descriptions are left out.
var terse = []string{"affinity", "tolerations", "env", "resources", "additionalDeployments", "selector"}

// unruled names the properties below which CEL rules are left out.
var unruled = []string{"unhealthyMachineConditions"}

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
	walk("", crd, mode{})
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), out...), 0o644)
}

// mode says what is left out of a part of the schema.
type mode struct{ quiet, unruled bool }

// walk edits the schema node that is the property name, and all below it.
func walk(name string, node any, m mode) {
	switch n := node.(type) {
	case []any:
		for _, item := range n {
			walk(name, item, m)
		}
	case map[string]any:
		edit(name, n, m)
		for key, child := range n {
			walk(key, child, mode{m.quiet || slices.Contains(terse, key), m.unruled || slices.Contains(unruled, key)})
		}
	}
}

// edit edits one schema node.
func edit(name string, node map[string]any, m mode) {
	if _, isText := node["description"].(string); isText && m.quiet {
		delete(node, "description")
	}
	if _, isRules := node["x-kubernetes-validations"].([]any); isRules && m.unruled {
		delete(node, "x-kubernetes-validations")
	}
	if required, ok := node["required"].([]any); ok && slices.Contains(sources, name) {
		dropRequired(node, required)
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
