// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// accept finds out what the Cluster is to become: its profile, its name and its version. It writes nothing.
func accept(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	if err := s.findLive(ctx); err != nil {
		return pipeline.Outcome{}, err
	}
	missing, err := s.findProfile(ctx)
	if err != nil {
		return pipeline.Outcome{}, err
	}
	if missing != "" {
		return s.hold(providerv1.ReasonProfileNotFound, missing), nil
	}
	if err := s.chooseName(); err != nil {
		return pipeline.Outcome{}, err
	}
	if outcome, err := s.checkConflict(ctx, s.Client); err != nil || !outcome.IsDone() {
		return outcome, err
	}
	return s.acceptVersion(ctx)
}

// hold keeps a new cluster from being made; about one that exists it is only reported.
func (s *scope) hold(reason, message string) pipeline.Outcome {
	if s.live == nil {
		return pipeline.Wait(reason, message, 0)
	}
	return pipeline.Report(reason, message)
}

// findLive fills in what the status says of the CAPI Cluster, and our CAPI Cluster as the cache knows it. It is found by
// its labels: a status can be lost.
func (s *scope) findLive(ctx context.Context) error {
	s.status = storedStatus(s.cluster)
	live, err := s.liveFrom(ctx, s.Client)
	if live != nil {
		s.live, s.version = live, live.Spec.Topology.Version
		s.status.ClusterName, s.status.Namespace = live.Name, live.Namespace
	}
	return err
}

// storedStatus returns our part of a Cluster's status; empty when there is none, or none that can be read: it is written
// anew then.
func storedStatus(cluster *clustersv1.Cluster) providerv1.ClusterStatus {
	var status providerv1.ClusterStatus
	if raw := cluster.Status.ProviderStatus; raw == nil || json.Unmarshal(raw.Raw, &status) != nil {
		return providerv1.ClusterStatus{}
	}
	return status
}

// liveFrom returns our CAPI Cluster, read with the given reader; nil when there is none.
func (s *scope) liveFrom(ctx context.Context, reader client.Reader) (*clusterv1.Cluster, error) {
	list := &clusterv1.ClusterList{}
	err := reader.List(ctx, list, client.InNamespace(s.cluster.Namespace), client.MatchingLabels{
		providerv1.ManagedByLabel: s.ProviderName, providerv1.ClusterNameLabel: clusterNameLabel(s.cluster.Name),
	})
	if err != nil && !apimeta.IsNoMatchError(err) {
		return nil, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("list CAPI Clusters: %w", err))
	}
	for i := range list.Items {
		if isOurs(&list.Items[i], s.cluster, s.ProviderName) {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// findProfile fills in the ProviderConfig and the profile, and says what of it is missing.
func (s *scope) findProfile(ctx context.Context) (string, error) {
	if s.clusterProfile == nil {
		return fmt.Sprintf("spec.profile: ClusterProfile %s does not exist", s.cluster.Spec.Profile), nil
	}
	name := s.clusterProfile.Spec.ProviderConfigRef.Name
	config := &providerv1.ProviderConfig{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: name}, config); apierrors.IsNotFound(err) {
		return fmt.Sprintf("ProviderConfig %s of ClusterProfile %s does not exist", name, s.clusterProfile.Name), nil
	} else if err != nil {
		return "", pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("read ProviderConfig %s: %w", name, err))
	}
	input := gitops.Input{Instance: s.ProviderName, Environment: s.Environment, Config: config.Name}
	for i, profile := range config.Spec.Profiles {
		published, err := input.ClusterProfileName(profile)
		if err == nil && published == s.clusterProfile.Name {
			s.config, s.profile = config, &config.Spec.Profiles[i]
			return "", nil
		}
	}
	return fmt.Sprintf("ProviderConfig %s has no profile for ClusterProfile %s any more: bring it back, or delete the Cluster",
		name, s.clusterProfile.Name), nil
}

// chooseName fills in the name of the CAPI Cluster, unless it has one.
func (s *scope) chooseName() error {
	s.status.ClusterName = cmp.Or(s.status.ClusterName, clusterName(s.cluster.Name, s.profile.Template.NameMaxLength))
	s.status.Namespace = s.cluster.Namespace
	s.status.ProviderConfig, s.status.Profile = s.config.Name, s.profile.Name
	return s.storeStatus()
}

// storeStatus puts our part into the status, in memory, unless it says the same already.
func (s *scope) storeStatus() error {
	if storedStatus(s.cluster) == s.status {
		return nil
	}
	return s.cluster.Status.SetProviderStatus(s.status)
}

// checkConflict looks, with the given reader, whether the name of the CAPI Cluster is somebody else's.
func (s *scope) checkConflict(ctx context.Context, reader client.Reader) (pipeline.Outcome, error) {
	if s.live != nil {
		return pipeline.Done(""), nil
	}
	key := client.ObjectKey{Namespace: s.status.Namespace, Name: s.status.ClusterName}
	found := &clusterv1.Cluster{}
	err := reader.Get(ctx, key, found)
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return pipeline.Done(""), nil
	}
	if err != nil {
		return pipeline.Outcome{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("read CAPI Cluster %s: %w", key, err))
	}
	if isOurs(found, s.cluster, s.ProviderName) {
		s.live = found
		return pipeline.Done(""), nil
	}
	return pipeline.Wait(providerv1.ReasonClusterConflict, fmt.Sprintf(
		"CAPI Cluster %s exists and was not made for this Cluster: delete it, or use another name", key), 0), nil
}

// acceptVersion fills in the Kubernetes version.
func (s *scope) acceptVersion(ctx context.Context) (pipeline.Outcome, error) {
	class, missing, err := s.findClass(ctx)
	if err != nil {
		return pipeline.Outcome{}, err
	}
	if missing != "" {
		return s.hold(providerv1.ReasonClusterClassNotFound, missing), nil
	}
	supported := gitops.SupportedVersions(*s.profile, class.Spec.KubernetesVersions)
	choice := chooseVersion(s.cluster.Spec.Kubernetes.Version, supported, s.version)
	if choice.version != "" {
		s.version = "v" + strings.TrimPrefix(choice.version, "v")
	}
	if choice.reason != "" {
		return s.hold(choice.reason, choice.message), nil
	}
	s.status.Version = strings.TrimPrefix(s.version, "v")
	message := fmt.Sprintf("profile %s, Kubernetes %s", s.clusterProfile.Name, s.status.Version)
	if choice.deprecated {
		message += ", which the profile calls deprecated"
	}
	return pipeline.Done(message), s.storeStatus()
}

// findClass returns the ClusterClass of the profile, or what to say when it does not exist.
func (s *scope) findClass(ctx context.Context) (*clusterv1.ClusterClass, string, error) {
	ref := s.profile.Template.Topology.ClassRef
	key := client.ObjectKey{Namespace: cmp.Or(ref.Namespace, s.cluster.Namespace), Name: ref.Name}
	class := &clusterv1.ClusterClass{}
	err := s.Client.Get(ctx, key, class)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("ClusterClass %s of profile %s does not exist: create it", key, s.profile.Name), nil
	}
	if err != nil {
		return nil, "", pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("read ClusterClass %s: %w", key, err))
	}
	return class, "", nil
}

// providerConditions are the conditions of a ProviderConfig that say whether its CAPI providers work.
var providerConditions = []string{
	providerv1.OperatorReadyCondition, providerv1.CoreReadyCondition, providerv1.ProvidersReadyCondition,
}

// checkProviders looks whether the CAPI providers of the ProviderConfig work. A new cluster waits for them; for one that
// exists it is no more than advice, so that the upgrade of a provider does not make all clusters unready.
func checkProviders(_ context.Context, s *scope) (pipeline.Outcome, error) {
	missing := s.missingProviders()
	switch {
	case missing == "":
		return pipeline.Done(fmt.Sprintf("the providers of ProviderConfig %s are ready", s.config.Name)), nil
	case s.live == nil:
		return pipeline.Wait(providerv1.ReasonProvidersNotReady, missing, 0), nil
	default:
		return pipeline.Advise(providerv1.ReasonProvidersNotReady, missing), nil
	}
}

// missingProviders says why the CAPI providers are not ready; empty when they are.
func (s *scope) missingProviders() string {
	if s.config == nil {
		return "the ProviderConfig is not known"
	}
	for _, kind := range providerConditions {
		c := apimeta.FindStatusCondition(s.config.Status.Conditions, kind)
		switch {
		case c == nil || (c.Status != metav1.ConditionFalse && c.ObservedGeneration != s.config.Generation):
			return fmt.Sprintf("ProviderConfig %s has not reported %s yet", s.config.Name, kind)
		case c.Status != metav1.ConditionTrue:
			return fmt.Sprintf("ProviderConfig %s: %s: %s", s.config.Name, kind, c.Message)
		}
	}
	return ""
}
