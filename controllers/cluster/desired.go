// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/controller-utils/pkg/controller"
	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	"github.com/openmcp-project/openmcp-operator/api/constants"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// clusterPurpose is the ManagedPurposeLabel of CAPI Clusters.
const clusterPurpose = "cluster"

// clusterName returns the name of the CAPI Cluster of the Cluster called name. CAPI uses it as a label value, and it and
// most providers use it in the names of Services and hosts: it must be a DNS label, of at most maxLength characters. A
// name that is no such label is shortened, and ends with a hash of the whole, so that no two Clusters share one.
func clusterName(name string, maxLength int32) string {
	limit := validation.DNS1123LabelMaxLength
	if maxLength > 0 {
		limit = min(limit, int(maxLength))
	}
	if len(name) <= limit && len(validation.IsDNS1123Label(name)) == 0 {
		return name
	}
	suffix := "-" + controller.NameHashSHAKE128Base32(name)
	base := strings.ReplaceAll(name, ".", "-")
	if room := limit - len(suffix); len(base) > room {
		base = base[:max(room, 0)]
	}
	return strings.TrimLeft(strings.TrimRight(base, "-")+suffix, "-")
}

// clusterNameLabel returns the ClusterNameLabel of the Cluster called name.
func clusterNameLabel(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	return controller.NameHashSHAKE128Base32(name)
}

// isOurs says whether a CAPI Cluster was made by this instance from that Cluster.
func isOurs(obj *clusterv1.Cluster, cluster *clustersv1.Cluster, providerName string) bool {
	return obj.Namespace == cluster.Namespace &&
		obj.Labels[providerv1.ManagedByLabel] == providerName &&
		obj.Labels[providerv1.ClusterNameLabel] == clusterNameLabel(cluster.Name) &&
		obj.Annotations[providerv1.ClusterNameAnnotation] == cluster.Name
}

// desiredCluster returns the CAPI Cluster that the profile asks for, with what the Cluster hands down.
func desiredCluster(s *scope) *clusterv1.Cluster {
	labels := handedDown(s.cluster.Labels)
	labels[providerv1.ManagedByLabel] = s.ProviderName
	labels[providerv1.ManagedPurposeLabel] = clusterPurpose
	labels[providerv1.ClusterNameLabel] = clusterNameLabel(s.cluster.Name)
	labels[providerv1.ProviderConfigLabel] = s.config.Name
	annotations := handedDown(s.cluster.Annotations)
	annotations[providerv1.ClusterNameAnnotation] = s.cluster.Name
	template := s.profile.Template.Topology.DeepCopy()
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.status.ClusterName, Namespace: s.status.Namespace, Labels: labels, Annotations: annotations,
		},
		Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{
			ClassRef:     template.ClassRef,
			Version:      s.version,
			ControlPlane: template.ControlPlane,
			Workers:      template.Workers,
			Variables:    template.Variables,
		}},
	}
}

// handedDown returns the labels or annotations that OpenControlPlane hands down from object to object.
func handedDown(metadata map[string]string) map[string]string {
	out := maps.Clone(metadata)
	maps.DeleteFunc(out, func(key, _ string) bool { return !strings.HasPrefix(key, constants.MetadataAnnotationLabelPrefix) })
	if out == nil {
		out = map[string]string{}
	}
	return out
}

// publishedLabels returns the labels by which OpenControlPlane shows a Cluster.
func publishedLabels(s *scope) map[string]string {
	running := strings.TrimPrefix(runningVersion(s.live, s.version), "v")
	return map[string]string{
		clustersv1.ProviderLabel: s.ProviderName,
		// A label value has no plus sign.
		clustersv1.K8sVersionLabel: strings.ReplaceAll(running, "+", "_"),
	}
}

// publishedAnnotations returns the annotations by which OpenControlPlane shows a Cluster.
func publishedAnnotations(s *scope) map[string]string {
	return map[string]string{
		clustersv1.ProviderInfoAnnotation: fmt.Sprintf("capi/%s/%s", s.status.Namespace, s.status.ClusterName),
	}
}

// metadataPatch returns a patch that sets labels and annotations, and leaves all others.
func metadataPatch(labels, annotations map[string]string) (client.Patch, error) {
	var metadata struct {
		Metadata struct {
			Labels      map[string]string `json:"labels,omitempty"`
			Annotations map[string]string `json:"annotations,omitempty"`
		} `json:"metadata"`
	}
	metadata.Metadata.Labels, metadata.Metadata.Annotations = labels, annotations
	raw, err := json.Marshal(metadata)
	if err != nil {
		return nil, err
	}
	return client.RawPatch(types.MergePatchType, raw), nil
}
