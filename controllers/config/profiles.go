// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
)

// maxListed is how many objects a message lists before it only counts them.
const maxListed = 5

// publishProfiles makes a ClusterProfile for each profile, and deletes those that are no longer wanted once no Cluster
// uses them.
func publishProfiles(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	wanted := map[string]bool{}
	var troubles []pipeline.Outcome
	for _, p := range s.config.Spec.Profiles {
		name, err := s.input.ClusterProfileName(p)
		if err != nil {
			return pipeline.Outcome{}, pipeline.Invalid(providerv1.ReasonInvalidSpec, err)
		}
		wanted[name] = true
		outcome, err := s.publishProfile(ctx, name, p)
		if err != nil {
			return pipeline.Outcome{}, err
		}
		if !outcome.IsDone() {
			troubles = append(troubles, outcome)
		}
	}
	blocked, err := s.pruneProfiles(ctx, wanted)
	if err != nil {
		return pipeline.Outcome{}, err
	}
	if len(blocked) > 0 {
		troubles = append(troubles, pipeline.Report(providerv1.ReasonDeletionBlocked,
			"ClusterProfiles that are no longer wanted are kept: "+strings.Join(blocked, "; ")))
	}
	if len(troubles) == 0 {
		return pipeline.Done(fmt.Sprintf("%d ClusterProfiles are published", len(wanted))), nil
	}
	messages := make([]string, 0, len(troubles))
	for _, t := range troubles {
		messages = append(messages, t.Message())
	}
	return pipeline.Report(troubles[0].Reason(), strings.Join(messages, "; ")), nil
}

// publishProfile makes the ClusterProfile of one profile. One that exists is left as it is while its ClusterClass is
// missing.
func (s *scope) publishProfile(ctx context.Context, name string, p providerv1.Profile) (pipeline.Outcome, error) {
	existing := &clustersv1.ClusterProfile{}
	err := s.Client.Get(ctx, client.ObjectKey{Name: name}, existing)
	if client.IgnoreNotFound(err) != nil {
		return pipeline.Outcome{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("read ClusterProfile %s: %w", name, err))
	}
	if err == nil && !s.isOwnProfile(existing) {
		return pipeline.Report(providerv1.ReasonProfileConflict, fmt.Sprintf(
			"profile %s: ClusterProfile %s exists and was not made for this ProviderConfig: set spec.profiles[%s].clusterProfileName",
			p.Name, name, p.Name)), nil
	}
	versions, missing, err := s.classVersions(ctx, p)
	if err != nil || missing != "" {
		return pipeline.Report(providerv1.ReasonClusterClassNotFound, missing), err
	}
	desired, err := s.input.ClusterProfile(p, versions)
	if err != nil {
		return pipeline.Outcome{}, pipeline.Invalid(providerv1.ReasonInvalidSpec, err)
	}
	if len(desired.Spec.SupportedVersions) == 0 {
		return pipeline.Report(providerv1.ReasonNoVersions, fmt.Sprintf(
			"profile %s: neither spec.profiles[%s].supportedVersions nor its ClusterClass lists a Kubernetes version: list some",
			p.Name, p.Name)), nil
	}
	if _, err := s.Applier.Apply(ctx, desired); err != nil {
		return pipeline.Outcome{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, err)
	}
	return pipeline.Done("published"), nil
}

// classVersions returns the Kubernetes versions that the ClusterClass of a profile lists, or what to say when the
// ClusterClass does not exist. A ClusterClass without a namespace is looked for in that of each Cluster: only then does
// it matter.
func (s *scope) classVersions(ctx context.Context, p providerv1.Profile) (versions []string, missing string, err error) {
	ref := p.Template.Topology.ClassRef
	if ref.Namespace == "" {
		return nil, "", nil
	}
	class := &clusterv1.ClusterClass{}
	err = s.Client.Get(ctx, client.ObjectKey{Name: ref.Name, Namespace: ref.Namespace}, class)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("profile %s: ClusterClass %s/%s does not exist: create it, or correct "+
			"spec.profiles[%s].template.topology.classRef",
			p.Name, ref.Namespace, ref.Name, p.Name), nil
	}
	if err != nil {
		return nil, "", pipeline.Fail(providerv1.ReasonPlatformClusterError,
			fmt.Errorf("read ClusterClass %s/%s: %w", ref.Namespace, ref.Name, err))
	}
	return class.Spec.KubernetesVersions, "", nil
}

// isOwnProfile says whether a ClusterProfile was made for this ProviderConfig.
func (s *scope) isOwnProfile(obj client.Object) bool {
	return s.profileSelector().Matches(labels.Set(obj.GetLabels()))
}

// profileSelector selects the ClusterProfiles of this ProviderConfig.
func (s *scope) profileSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{
		providerv1.ManagedByLabel:      s.ProviderName,
		providerv1.ProviderConfigLabel: s.config.Name,
		providerv1.ManagedPurposeLabel: clusterProfilePurpose,
	})
}

// clusterProfilePurpose is the ManagedPurposeLabel of ClusterProfiles.
const clusterProfilePurpose = "cluster-profile"

// pruneProfiles deletes the ClusterProfiles of this ProviderConfig that are not wanted, and says which are kept because
// Clusters use them.
func (s *scope) pruneProfiles(ctx context.Context, wanted map[string]bool) ([]string, error) {
	users, err := s.profileUsers(ctx)
	if err != nil {
		return nil, err
	}
	left, err := s.Applier.Prune(ctx, []client.ObjectList{&clustersv1.ClusterProfileList{}}, s.profileSelector(),
		func(obj client.Object) bool { return wanted[obj.GetName()] || len(users[obj.GetName()]) > 0 })
	if err != nil {
		return nil, pipeline.Fail(providerv1.ReasonPlatformClusterError, err)
	}
	gone := map[string]bool{}
	for _, obj := range left {
		gone[obj.GetName()] = true
	}
	own := &clustersv1.ClusterProfileList{}
	if err := s.Client.List(ctx, own, client.MatchingLabelsSelector{Selector: s.profileSelector()}); err != nil {
		return nil, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("list ClusterProfiles: %w", err))
	}
	var blocked []string
	for _, profile := range own.Items {
		if !wanted[profile.Name] && !gone[profile.Name] {
			blocked = append(blocked, fmt.Sprintf("%s is used by %s", profile.Name, listed("Cluster", users[profile.Name])))
		}
	}
	return blocked, nil
}

// profileUsers returns the Clusters that use each ClusterProfile.
func (s *scope) profileUsers(ctx context.Context) (map[string][]string, error) {
	clusters := &clustersv1.ClusterList{}
	if err := s.Client.List(ctx, clusters); err != nil {
		return nil, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("list Clusters: %w", err))
	}
	users := map[string][]string{}
	for _, c := range clusters.Items {
		users[c.Spec.Profile] = append(users[c.Spec.Profile], c.Namespace+"/"+c.Name)
	}
	return users, nil
}

// listed returns the names of objects of a kind, in order; only the first few when there are many.
func listed(kind string, names []string) string {
	names = slices.Sorted(slices.Values(names))
	if len(names) != 1 {
		kind += "s"
	}
	if len(names) > maxListed {
		return fmt.Sprintf("%d %s (%s, ...)", len(names), kind, strings.Join(names[:maxListed], ", "))
	}
	return kind + " " + strings.Join(names, ", ")
}
