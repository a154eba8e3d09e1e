// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// manifestTypes are the types of providers as clusterctl names them in the label of all that a provider consists of.
var manifestTypes = map[providerv1.ProviderType]clusterctlv1.ProviderType{
	providerv1.InfrastructureType: clusterctlv1.InfrastructureProviderType,
	providerv1.BootstrapType:      clusterctlv1.BootstrapProviderType,
	providerv1.ControlPlaneType:   clusterctlv1.ControlPlaneProviderType,

	providerv1.AddonType:            clusterctlv1.AddonProviderType,
	providerv1.IPAMType:             clusterctlv1.IPAMProviderType,
	providerv1.RuntimeExtensionType: clusterctlv1.RuntimeExtensionProviderType,
}

// manifestLabel returns the value of that label for a component; empty for one that is no provider, and for core.
func manifestLabel(component string) string {
	for kind, manifest := range manifestTypes {
		if name, ok := strings.CutPrefix(component, gitops.ComponentKey(kind, "")); ok {
			return clusterctlv1.ManifestLabel(name, manifest)
		}
	}
	return ""
}

// usersOf returns the objects that a provider still looks after: those of its own kinds, but templates. Without it nobody
// would take away what they stand for. It is asked only when a provider is to go, and reads past the cache.
func (s *scope) usersOf(ctx context.Context, component string) ([]string, error) {
	if strings.HasPrefix(component, gitops.SetPrefix) {
		return s.usersOfSet(ctx, component)
	}
	label := manifestLabel(component)
	if label == "" {
		return nil, nil
	}
	crds := &metav1.PartialObjectMetadataList{}
	crds.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := s.Client.List(ctx, crds, client.MatchingLabels{clusterv1.ProviderNameLabel: label}); err != nil {
		return nil, fmt.Errorf("list the CRDs of provider %s: %w", label, err)
	}
	var users []string
	for _, crd := range crds.Items {
		names, err := s.objectsOf(ctx, schema.ParseGroupResource(crd.Name))
		if err != nil {
			return nil, err
		}
		users = append(users, names...)
	}
	return users, nil
}

// usersOfSet returns the objects that the providers of a provider set still look after.
func (s *scope) usersOfSet(ctx context.Context, component string) ([]string, error) {
	providers, err := s.providersOf(ctx, component)
	if err != nil {
		return nil, err
	}
	var users []string
	for _, provider := range providers {
		names, err := s.usersOf(ctx, gitops.ComponentKey(gitops.ProviderTypeOf(provider), provider.GetName()))
		if err != nil {
			return nil, err
		}
		users = append(users, names...)
	}
	return users, nil
}

// objectsOf returns the first objects of a kind, unless it is one of templates.
func (s *scope) objectsOf(ctx context.Context, resource schema.GroupResource) ([]string, error) {
	gvk, err := s.Client.RESTMapper().KindFor(resource.WithVersion(""))
	if apimeta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("look for the kind of %s: %w", resource, err)
	}
	if strings.HasSuffix(gvk.Kind, "Template") {
		return nil, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := s.reader().List(ctx, list, client.Limit(maxListed+1)); err != nil {
		return nil, fmt.Errorf("list %s: %w", resource, err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, fmt.Sprintf("%s %s", gvk.Kind, strings.TrimPrefix(client.ObjectKeyFromObject(&item).String(), "/")))
	}
	return names, nil
}
