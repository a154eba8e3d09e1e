// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// clusterProfilePurpose is the ManagedPurposeLabel of ClusterProfiles.
const clusterProfilePurpose = "cluster-profile"

// ClusterProfileName returns the name of the ClusterProfile of a profile. It is used as a label value elsewhere in
// OpenControlPlane, so one that is too long is an error.
func (in Input) ClusterProfileName(p providerv1.Profile) (string, error) {
	name := p.ClusterProfileName
	if name == "" {
		name = strings.Join([]string{in.Environment, in.Instance, in.Config, p.Name}, ".")
	}
	if len(name) > validation.LabelValueMaxLength {
		return "", fmt.Errorf("spec.profiles[%s]: the ClusterProfile name %q has %d characters, more than the %d of a label value: "+
			"set clusterProfileName", p.Name, name, len(name), validation.LabelValueMaxLength)
	}
	return name, nil
}

// ClusterProfile returns the ClusterProfile of a profile. The versions are those of its ClusterClass, oldest first; they
// are used when the profile lists none.
func (in Input) ClusterProfile(p providerv1.Profile, classVersions []string) (*clustersv1.ClusterProfile, error) {
	name, err := in.ClusterProfileName(p)
	if err != nil {
		return nil, err
	}
	for _, v := range p.SupportedVersions {
		if _, err := version.ParseSemantic(strings.TrimPrefix(v.Version, "v")); err != nil {
			return nil, fmt.Errorf("spec.profiles[%s].supportedVersions: %q must have major, minor and patch, such as 1.34.2", p.Name, v.Version)
		}
	}
	labels := in.labels(clusterProfilePurpose)
	delete(labels, providerv1.ComponentLabel)
	labels[providerv1.ProfileLabel] = p.Name
	return &clustersv1.ClusterProfile{
		TypeMeta:   typeMeta(clustersv1.GroupVersion.String(), "ClusterProfile"),
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: clustersv1.ClusterProfileSpec{
			ProviderRef:       commonapi.LocalObjectReference{Name: in.Instance},
			ProviderConfigRef: commonapi.LocalObjectReference{Name: in.Config},
			SupportedVersions: SupportedVersions(p, classVersions),
		},
	}, nil
}

// SupportedVersions returns the Kubernetes versions of a profile, newest first and without the leading v. It is never nil,
// since a ClusterProfile must have the field.
func SupportedVersions(p providerv1.Profile, classVersions []string) []clustersv1.SupportedK8sVersion {
	out := append([]clustersv1.SupportedK8sVersion{}, p.SupportedVersions...)
	if len(out) == 0 {
		for _, v := range classVersions {
			out = append(out, clustersv1.SupportedK8sVersion{Version: v})
		}
	}
	for i := range out {
		out[i].Version = strings.TrimPrefix(out[i].Version, "v")
	}
	slices.SortStableFunc(out, func(a, b clustersv1.SupportedK8sVersion) int { return -CompareVersions(a.Version, b.Version) })
	return out
}

// CompareVersions compares two Kubernetes versions, with or without a leading v; ones that are no versions come first.
func CompareVersions(a, b string) int {
	va, errA := version.ParseSemantic(strings.TrimPrefix(a, "v"))
	vb, errB := version.ParseSemantic(strings.TrimPrefix(b, "v"))
	switch {
	case errA != nil || errB != nil:
		return cmp.Or(cmp.Compare(boolInt(errA == nil), boolInt(errB == nil)), cmp.Compare(a, b))
	case va.LessThan(vb):
		return -1
	case vb.LessThan(va):
		return 1
	default:
		return cmp.Compare(va.BuildMetadata(), vb.BuildMetadata())
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
