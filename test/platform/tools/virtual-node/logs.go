// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// messageLines of a failed container's log go into its status.
const messageLines = 5

// tail is the end of a log as a message.
func tail(path string) string {
	var out strings.Builder
	_, _ = io.Copy(&out, lastLines(path, messageLines))
	return strings.TrimSpace(out.String())
}

// lastLines reads the last lines of a file; a file that cannot be read has none.
func lastLines(path string, n int) io.Reader {
	raw, err := os.ReadFile(path)
	if err != nil {
		return strings.NewReader("")
	}
	lines := bytes.SplitAfter(bytes.TrimRight(raw, "\n"), []byte("\n"))
	return bytes.NewReader(bytes.Join(lines[max(0, len(lines)-n):], nil))
}

// expandAll resolves $(NAME) references in arguments.
func expandAll(args []string, env map[string]string) []string {
	var all []string
	for _, arg := range args {
		all = append(all, expansion.Expand(arg, expansion.MappingFuncFor(env)))
	}
	return all
}

// sortConditions gives conditions a stable order, so that an unchanged status stays equal.
func sortConditions(conditions []corev1.PodCondition) {
	slices.SortFunc(conditions, func(a, b corev1.PodCondition) int { return strings.Compare(string(a.Type), string(b.Type)) })
}
