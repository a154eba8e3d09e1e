// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// scope is what the steps of one reconciliation share.
type scope struct {
	*Reconciler

	// config is the ProviderConfig; set when the scope is made.
	config *providerv1.ProviderConfig

	// nudge says that Flux must reconcile now; set when the scope is made.
	nudge bool

	// takesOver says that what another release of the provider has applied is overwritten; set when the scope is made.
	takesOver bool

	// configs are all ProviderConfigs of this instance; set by resolve.
	configs []providerv1.ProviderConfig

	// input is what the emitted objects depend on; set by resolve.
	input gitops.Input

	// bundle is what the ProviderConfig installs; set by resolve.
	bundle gitops.Bundle

	// claims say who installs each component; set by resolve.
	claims map[string]gitops.Claim

	// missingSecrets are the config Secrets that do not exist, by component; set by checkCredentials.
	missingSecrets map[string]string

	// components is what status.components becomes; added to by each step that installs something.
	components []providerv1.Component
}

// owns says whether this ProviderConfig is the one that installs a component.
func (s *scope) owns(component string) bool {
	return s.claims[component].Owner == s.config.Name
}

// inherits says whether this ProviderConfig is the one that inherits what an init without any ProviderConfig left
// behind: it owns the CAPI Operator, or is the last that goes.
func (s *scope) inherits() bool {
	if s.config.DeletionTimestamp != nil {
		return s.isLast()
	}
	return s.owns(gitops.Operator)
}

// report puts the components into the status. One that was not reached keeps what was known of it.
func (s *scope) report() {
	reached := map[string]bool{}
	for _, c := range s.components {
		reached[c.Type+"/"+c.Name] = true
	}
	wanted := map[string]bool{}
	for _, part := range s.bundle.Parts() {
		wanted[part.Type+"/"+part.Name] = true
	}
	components := s.components
	for _, c := range s.config.Status.Components {
		if key := c.Type + "/" + c.Name; !reached[key] && (wanted[key] || len(s.bundle.Parts()) == 0) {
			components = append(components, c)
		}
	}
	s.config.Status.Components = components

	ready, total := 0, 0
	for _, c := range components {
		if isProvider(c) {
			total++
			ready += boolInt(c.Ready)
		}
	}
	s.config.Status.Providers = fmt.Sprintf("%d/%d", ready, max(total, 1+len(s.config.Spec.Providers)))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// isProvider says whether a component is a CAPI provider.
func isProvider(c providerv1.Component) bool {
	return gitops.NewProviderObject(providerv1.ProviderType(c.Type)) != nil
}

// selector selects the objects of this ProviderConfig, or with an empty name those that an `init` made without one.
func (s *scope) selector(config string) labels.Selector {
	managed, _ := labels.NewRequirement(providerv1.ManagedByLabel, selection.Equals, []string{s.ProviderName})
	belongs, _ := labels.NewRequirement(providerv1.ProviderConfigLabel, selection.DoesNotExist, nil)
	if config != "" {
		belongs, _ = labels.NewRequirement(providerv1.ProviderConfigLabel, selection.Equals, []string{config})
	}
	component, _ := labels.NewRequirement(providerv1.ComponentLabel, selection.Exists, nil)
	return labels.NewSelector().Add(*managed, *belongs, *component)
}
