// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// Claim says who installs a component that a ProviderConfig names.
type Claim struct {
	// Owner is the name of the ProviderConfig that installs the component: the oldest one that names it.
	Owner string

	// Conflict says that the owner installs it in another way than this ProviderConfig asks for.
	Conflict bool
}

// Claims returns, for every component of the ProviderConfig called name, who installs it. The configs are all
// ProviderConfigs of the instance; one that is being deleted owns a component only while no other names it. What a
// younger ProviderConfig leaves out entirely is no wish of its own, and so never a conflict.
func Claims(name string, configs []providerv1.ProviderConfig, defaults Defaults) map[string]Claim {
	sorted := slices.Clone(configs)
	slices.SortFunc(sorted, func(a, b providerv1.ProviderConfig) int {
		return cmp.Or(
			cmp.Compare(boolInt(a.DeletionTimestamp != nil), boolInt(b.DeletionTimestamp != nil)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	owners := map[string]string{}
	wishes := map[string]map[string]any{}
	for _, config := range sorted {
		wishes[config.Name] = wishesOf(config.Spec, defaults)
		for component := range wishes[config.Name] {
			if _, taken := owners[component]; !taken {
				owners[component] = config.Name
			}
		}
	}
	claims := map[string]Claim{}
	for component, mine := range wishes[name] {
		owner := owners[component]
		theirs := wishes[owner][component]
		claims[component] = Claim{
			Owner:    owner,
			Conflict: owner != name && mine != nil && !equality.Semantic.DeepEqual(mine, theirs),
		}
	}
	return claims
}

// wishesOf returns what a spec asks for of each component; nil where it leaves the component out.
func wishesOf(spec providerv1.ProviderConfigSpec, defaults Defaults) map[string]any {
	full := defaults.Complete(spec)
	wishes := map[string]any{CertManager: nil, Operator: nil, ProviderSet: nil, Core: nil}
	if !equality.Semantic.DeepEqual(spec.CertManager, providerv1.CertManagerSpec{}) {
		wishes[CertManager] = full.CertManager
	}
	if !equality.Semantic.DeepEqual(spec.Operator, providerv1.OperatorSpec{}) {
		wishes[Operator] = full.Operator
	}
	if spec.ProviderSource != nil {
		wishes[ProviderSet] = full.ProviderSource
	}
	if !equality.Semantic.DeepEqual(spec.Core, providerv1.CoreProvider{}) {
		wishes[Core] = full.Core
	}
	for _, set := range full.ProviderSets {
		wishes[SetPrefix+set.Name] = set
	}
	for _, p := range full.Providers {
		p.Namespace = ProviderKey(p).Namespace
		wishes[ComponentKey(p.Type, p.Name)] = p
	}
	return wishes
}
