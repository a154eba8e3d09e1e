// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// table is the configuration file: what to run for each image.
type table struct {
	Images map[string]image `json:"images"`
}

// image is the local stand-in of a container image. Args and Env may use the placeholders of [placeholders].
type image struct {
	// Path of the binary; the container's own command, if it has one, only contributes its arguments.
	Path string `json:"path"`
	// DefaultArgs are used when the container has neither command nor args.
	DefaultArgs []string `json:"defaultArgs,omitempty"`
	// Args are appended to the container's: of a flag that is given twice, the last one wins.
	Args []string `json:"args,omitempty"`
	// CommandArgs are appended when the container's first argument is the key, as not every subcommand has every flag.
	CommandArgs map[string][]string `json:"commandArgs,omitempty"`
	// Env is added to the container's environment and wins over it.
	Env map[string]string `json:"env,omitempty"`
}

// placeholders are what a template in the table can ask for about the container at hand.
type placeholders struct {
	// port allots the real loopback port behind a container port: {{port 9443}}.
	port func(containerPort int32) (int, error)
	// dir is the real folder behind a path in the container: {{dir "/certs"}}.
	dir func(path string) string
	// kubeconfig is the path of the pod's kubeconfig: {{kubeconfig}}.
	kubeconfig string
}

// loadImage looks an image up in the table. The file is read each time, so that images can be added to it.
func loadImage(path, name string) (image, bool, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return image{}, false, fmt.Errorf("read image table: %w", err)
	}
	var t table
	if err := yaml.UnmarshalStrict(raw, &t); err != nil {
		return image{}, false, fmt.Errorf("read image table %s: %w", path, err)
	}
	entry, ok := t.Images[name]
	return entry, ok, nil
}

// arguments are the full arguments of a container: its own, with the mounted paths rewritten, then the table's.
func (i image) arguments(command, args []string, p placeholders, rewrite func(string) string) ([]string, error) {
	var own []string
	if len(command) > 0 {
		own = append(own, command[1:]...)
	}
	own = append(own, args...)
	if len(command) == 0 && len(args) == 0 {
		own = i.DefaultArgs
	}
	var all []string
	for _, arg := range own {
		all = append(all, rewrite(arg))
	}
	extra := i.Args
	if len(own) > 0 {
		extra = append(append([]string{}, extra...), i.CommandArgs[own[0]]...)
	}
	for _, arg := range extra {
		text, err := p.expand(arg)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// expand fills the placeholders in a text of the table.
func (p placeholders) expand(text string) (string, error) {
	t, err := template.New("").Funcs(template.FuncMap{
		"port":       func(port int) (int, error) { return p.port(int32(port)) },
		"dir":        p.dir,
		"kubeconfig": func() string { return p.kubeconfig },
	}).Parse(text)
	if err != nil {
		return "", fmt.Errorf("placeholder in %q: %w", text, err)
	}
	var out strings.Builder
	if err := t.Execute(&out, nil); err != nil {
		return "", fmt.Errorf("placeholder in %q: %w", text, err)
	}
	return out.String(), nil
}
