// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
)

// WriteYAML writes objects as YAML documents, in the order given, as a user would keep them in Git: without status and
// without what the API server adds. Each object must have its apiVersion and kind, as those of the builders do.
func WriteYAML(w io.Writer, objs ...client.Object) error {
	for _, obj := range objs {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return fmt.Errorf("encode %s: %w", obj.GetName(), err)
		}
		delete(content, "status")
		if metadata, ok := content["metadata"].(map[string]any); ok {
			delete(metadata, "creationTimestamp")
		}
		raw, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("encode %s: %w", obj.GetName(), err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s%s", remark(obj), raw); err != nil {
			return err
		}
	}
	return nil
}

// remark returns a comment on what an object lacks that only the platform cluster knows.
func remark(obj client.Object) string {
	if profile, ok := obj.(*clustersv1.ClusterProfile); ok && len(profile.Spec.SupportedVersions) == 0 {
		return "# On the platform cluster, supportedVersions are those of the ClusterClass.\n"
	}
	return ""
}

// Render returns all objects that a ProviderConfig stands for, in the order in which they are applied: what it installs,
// and its ClusterProfiles. A profile that lists no Kubernetes versions has those of its ClusterClass, which only the
// platform cluster knows: its ClusterProfile is rendered with an empty list, and a comment.
func Render(in Input) ([]client.Object, error) {
	bundle, err := Build(in)
	if err != nil {
		return nil, err
	}
	objs := bundle.Objects()
	for _, p := range in.Spec.Profiles {
		profile, err := in.ClusterProfile(p, nil)
		if err != nil {
			return nil, err
		}
		objs = append(objs, profile)
	}
	return objs, nil
}
