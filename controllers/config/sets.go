// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// installSet installs a provider set, and returns the state of the set and of the providers in it, which it also adds to
// the status.
func (s *scope) installSet(ctx context.Context, part gitops.Part) ([]providerv1.Component, error) {
	set, err := s.install(ctx, part)
	if err != nil {
		return nil, err
	}
	components := []providerv1.Component{set}
	providers, err := s.providersOf(ctx, part.Component)
	if err != nil {
		return nil, pipeline.Fail(providerv1.ReasonPlatformClusterError, err)
	}
	for _, provider := range providers {
		spec := provider.GetSpec()
		health := gitops.ProviderHealth(provider, spec.Version)
		c := providerv1.Component{
			Name: provider.GetName(), Type: string(gitops.ProviderTypeOf(provider)), Version: spec.Version,
			InstalledVersion: ptr.Deref(provider.GetStatus().InstalledVersion, ""), Ready: health.Ready, Flux: set.Flux,
		}
		if !health.Ready {
			c.Reason, c.Message = health.Reason, health.Message
		}
		components = append(components, c)
	}
	s.components = append(s.components, components[1:]...)
	return components, nil
}

// providersOf returns the provider objects that a component consists of.
func (s *scope) providersOf(ctx context.Context, component string) ([]operatorv1.GenericProvider, error) {
	selector := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{
		providerv1.ManagedByLabel: s.ProviderName, providerv1.ComponentLabel: component,
	})}
	var out []operatorv1.GenericProvider
	for _, kind := range providerKinds() {
		if err := s.Client.List(ctx, kind, selector); apimeta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("list %T: %w", kind, err)
		}
		items, err := apimeta.ExtractList(kind)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if provider, ok := item.(operatorv1.GenericProvider); ok {
				out = append(out, provider)
			}
		}
	}
	return out, nil
}
