// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// awaitDependents waits until no Cluster uses a profile of the ProviderConfig and, when the core provider goes with it,
// until no CAPI Cluster is left: nobody would clean up behind it. Profiles that no Cluster uses are taken back at once,
// so that no new Cluster is sent here.
func awaitDependents(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	if err := s.listConfigs(ctx); err != nil {
		return pipeline.Outcome{}, err
	}
	blocked, err := s.pruneProfiles(ctx, nil)
	if err != nil {
		return pipeline.Outcome{}, err
	}
	if len(blocked) > 0 {
		return pipeline.Wait(providerv1.ReasonDeletionBlocked,
			"ClusterProfiles are still used: "+strings.Join(blocked, "; ")+"; delete these Clusters first", 0), nil
	}
	if !s.isLast() {
		return pipeline.Done("no Cluster uses the ProviderConfig"), nil
	}
	clusters := &clusterv1.ClusterList{}
	if err := s.Client.List(ctx, clusters); err != nil && !apimeta.IsNoMatchError(err) {
		return pipeline.Outcome{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("list CAPI Clusters: %w", err))
	}
	if len(clusters.Items) > 0 {
		names := make([]string, 0, len(clusters.Items))
		for _, c := range clusters.Items {
			names = append(names, c.Namespace+"/"+c.Name)
		}
		return pipeline.Wait(providerv1.ReasonDeletionBlocked, fmt.Sprintf(
			"the last ProviderConfig takes the core provider with it, but there is still %s: delete them first",
			listed("CAPI Cluster", names)), 0), nil
	}
	return pipeline.Done("no Cluster uses the ProviderConfig"), nil
}

// isLast says whether no other ProviderConfig of this instance stays.
func (s *scope) isLast() bool {
	return !slices.ContainsFunc(s.configs, func(c providerv1.ProviderConfig) bool {
		return c.Name != s.config.Name && c.DeletionTimestamp == nil
	})
}

// stage is what is uninstalled at once.
type stage struct {
	// title is what a message calls it.
	title string

	// member says whether an object is part of the stage.
	member func(obj client.Object) bool

	// ready says what the stage still waits for; empty when it may begin. It may be nil.
	ready func(ctx context.Context, s *scope) (string, error)
}

// stages are what is uninstalled, in this order: the reverse of the order in which it was installed.
var stages = []stage{
	{title: "the providers", member: isPlainProvider},
	{title: "the core provider", member: isComponent(gitops.Core)},
	{title: "the provider set", member: isComponent(gitops.ProviderSet)},
	{title: "the CAPI Operator", member: isComponent(gitops.Operator), ready: noProvidersLeft},
	{title: "cert-manager", member: isComponent(gitops.CertManager)},
}

func isComponent(name string) func(client.Object) bool {
	return func(obj client.Object) bool { return obj.GetLabels()[providerv1.ComponentLabel] == name }
}

// isPlainProvider says whether an object belongs to a provider other than core.
func isPlainProvider(obj client.Object) bool {
	return !slices.Contains([]string{gitops.CertManager, gitops.Operator, gitops.ProviderSet, gitops.Core},
		obj.GetLabels()[providerv1.ComponentLabel])
}

// uninstall takes away what the ProviderConfig installed, stage by stage, and waits for the real objects to be gone.
// What another ProviderConfig names too is left to that one.
func uninstall(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	for _, stage := range stages {
		left, err := s.remove(ctx, stage)
		if err != nil {
			return pipeline.Outcome{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, err)
		}
		if left.message != "" {
			return pipeline.Wait(left.reason, fmt.Sprintf("%s: %s", stage.title, left.message), missingRetry), nil
		}
	}
	return pipeline.Done("all is uninstalled"), nil
}

// remains says what is left of what is to be removed, and why; both are empty when nothing is.
type remains struct{ reason, message string }

// remove deletes the objects of a stage, and says what is left of them. A provider that still has objects to look after
// stays.
func (s *scope) remove(ctx context.Context, stage stage) (remains, error) {
	for _, kinds := range [][]client.ObjectList{installers(), providerKinds(), sources()} {
		doomed, err := s.doomed(ctx, kinds, stage)
		if err != nil {
			return remains{}, err
		}
		if len(doomed) == 0 {
			continue
		}
		if stage.ready != nil {
			if waitsFor, err := stage.ready(ctx, s); err != nil || waitsFor != "" {
				return remains{providerv1.ReasonUninstalling, waitsFor}, err
			}
		}
		return s.removeObjects(ctx, doomed)
	}
	return remains{}, nil
}

// removeObjects deletes those of the objects that may go.
func (s *scope) removeObjects(ctx context.Context, doomed []client.Object) (remains, error) {
	var names, used []string
	for _, obj := range doomed {
		if obj.GetDeletionTimestamp() == nil {
			component := obj.GetLabels()[providerv1.ComponentLabel]
			users, err := s.usersOf(ctx, component)
			if err != nil {
				return remains{}, err
			}
			if len(users) > 0 {
				used = append(used, fmt.Sprintf("%s is still used by %s", component, listed("object", users)))
				continue
			}
		}
		if err := s.resume(ctx, obj); err != nil {
			return remains{}, err
		}
		if err := s.Applier.Delete(ctx, obj); err != nil {
			return remains{}, err
		}
		names = append(names, s.describeObject(obj))
	}
	slices.Sort(names)
	if len(used) > 0 {
		return remains{providerv1.ReasonDeletionBlocked, strings.Join(slices.Sorted(slices.Values(used)), "; ") + ": delete them first"}, nil
	}
	return remains{providerv1.ReasonUninstalling, "waiting until these are gone: " + strings.Join(names, ", ")}, nil
}

// doomed returns the objects of the given kinds that belong to the stage, and to this ProviderConfig alone.
func (s *scope) doomed(ctx context.Context, kinds []client.ObjectList, stage stage) ([]client.Object, error) {
	selected := []string{s.config.Name}
	if s.inherits() {
		selected = append(selected, "") // what an init without any ProviderConfig made
	}
	var out []client.Object
	for _, name := range selected {
		for _, kind := range kinds {
			list, _ := kind.DeepCopyObject().(client.ObjectList)
			err := s.Client.List(ctx, list, client.MatchingLabelsSelector{Selector: s.selector(name)})
			if apimeta.IsNoMatchError(err) {
				continue
			} else if err != nil {
				return nil, fmt.Errorf("list %T: %w", kind, err)
			}
			items, err := apimeta.ExtractList(list)
			if err != nil {
				return nil, err
			}
			for _, item := range items {
				obj, ok := item.(client.Object)
				if ok && stage.member(obj) && !s.claimedByOther(obj) {
					out = append(out, obj)
				}
			}
		}
	}
	return out, nil
}

// resume makes Flux work on an object again: the deletion of a suspended one takes away nothing but itself.
func (s *scope) resume(ctx context.Context, obj client.Object) error {
	if obj.GetDeletionTimestamp() != nil || gitops.FluxHealth(obj).Reason != providerv1.ReasonSuspended {
		return nil
	}
	patch := client.RawPatch(client.Merge.Type(), []byte(`{"spec":{"suspend":false}}`))
	if err := s.Client.Patch(ctx, obj, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("resume %s: %w", s.describeObject(obj), err)
	}
	return nil
}

// noProvidersLeft says which provider objects, whoever made them, still need the CAPI Operator.
func noProvidersLeft(ctx context.Context, s *scope) (string, error) {
	var names []string
	for _, kind := range providerKinds() {
		if err := s.Client.List(ctx, kind); apimeta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return "", fmt.Errorf("list %T: %w", kind, err)
		}
		items, err := apimeta.ExtractList(kind)
		if err != nil {
			return "", err
		}
		for _, item := range items {
			if obj, ok := item.(client.Object); ok {
				names = append(names, s.describeObject(obj))
			}
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return "it is still needed by " + strings.Join(slices.Sorted(slices.Values(names)), ", ") + ": delete them first", nil
}

// describeObject returns the kind, namespace and name of an object.
func (s *scope) describeObject(obj client.Object) string {
	gvk, err := s.Client.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Sprintf("%T %s", obj, client.ObjectKeyFromObject(obj))
	}
	return gvk.Kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}

// providerKinds are all kinds of the CAPI Operator's provider objects.
func providerKinds() []client.ObjectList {
	return []client.ObjectList{
		&operatorv1.CoreProviderList{}, &operatorv1.InfrastructureProviderList{}, &operatorv1.BootstrapProviderList{},
		&operatorv1.ControlPlaneProviderList{}, &operatorv1.AddonProviderList{}, &operatorv1.IPAMProviderList{},
		&operatorv1.RuntimeExtensionProviderList{},
	}
}
