// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// probedCRDs are the CRDs whose appearance a ProviderConfig may wait for.
var probedCRDs = map[string]bool{
	"certificates.cert-manager.io":                      true,
	"issuers.cert-manager.io":                           true,
	"infrastructureproviders.operator.cluster.x-k8s.io": true,
	"helmreleases.helm.toolkit.fluxcd.io":               true,
	"kustomizations.kustomize.toolkit.fluxcd.io":        true,
	"ocirepositories.source.toolkit.fluxcd.io":          true,
}

// SetupWithManager makes the manager call Reconcile for all that can change the outcome for a ProviderConfig.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.uncached = mgr.GetAPIReader()
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	b := ctrl.NewControllerManagedBy(mgr).Named("providerconfig").
		For(&providerv1.ProviderConfig{}, builder.WithPredicates(changed)).
		// Who owns a component depends on all ProviderConfigs.
		Watches(&providerv1.ProviderConfig{}, handler.EnqueueRequestsFromMapFunc(r.allConfigs), builder.WithPredicates(changed)).
		Watches(crd, handler.EnqueueRequestsFromMapFunc(r.allConfigs), builder.OnlyMetadata, builder.WithPredicates(
			predicate.NewPredicateFuncs(func(obj client.Object) bool { return probedCRDs[obj.GetName()] }))).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.configsOfSecret), builder.WithPredicates(existence)).
		Watches(&clusterv1.ClusterClass{}, handler.EnqueueRequestsFromMapFunc(r.configsOfClass),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.allConfigs), builder.WithPredicates(deletion)).
		Watches(&clustersv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.allConfigs), builder.WithPredicates(deletion))
	kinds := append(append(installers(), sources()...), providerKinds()...)
	for _, list := range append(kinds, &clustersv1.ClusterProfileList{}) {
		obj, err := r.elementOf(list)
		if err != nil {
			return err
		}
		b = b.Watches(obj, handler.EnqueueRequestsFromMapFunc(r.allConfigs), builder.WithPredicates(
			predicate.NewPredicateFuncs(func(obj client.Object) bool { return r.concerns(obj) })))
	}
	return b.Complete(r)
}

// existence lets through that an object appears or goes.
var existence = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// deletion lets through that an object has gone.
var deletion = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// elementOf returns an empty object of the kind that a list is of.
func (r *Reconciler) elementOf(list client.ObjectList) (client.Object, error) {
	gvk, err := r.Client.GroupVersionKindFor(list)
	if err != nil {
		return nil, err
	}
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	obj, err := r.Client.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	out, _ := obj.(client.Object)
	return out, nil
}

// concerns says whether an object may matter to a ProviderConfig of this instance: it carries our label, or it may be
// the provider object of somebody else that the CAPI Operator is still needed for.
func (r *Reconciler) concerns(obj client.Object) bool {
	if obj.GetLabels()[providerv1.ManagedByLabel] == r.ProviderName {
		return true
	}
	gvk, err := r.Client.GroupVersionKindFor(obj)
	return err == nil && gvk.Group == "operator.cluster.x-k8s.io" && obj.GetDeletionTimestamp() != nil
}

// allConfigs returns all ProviderConfigs of this instance: they share what is installed, and there are few.
func (r *Reconciler) allConfigs(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.configsWith(ctx, func(providerv1.ProviderConfig) bool { return true })
}

// configsOfSecret returns the ProviderConfigs that name a Secret.
func (r *Reconciler) configsOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(secret)
	return r.configsWith(ctx, func(config providerv1.ProviderConfig) bool {
		bundle, err := gitops.Build(r.inputFor(config))
		if err != nil {
			return false
		}
		for _, part := range append([]gitops.Part{bundle.Core}, bundle.Providers...) {
			if gitops.ConfigSecretKey(*part.Provider) == key {
				return true
			}
		}
		return false
	})
}

// configsOfClass returns the ProviderConfigs that have a profile with a ClusterClass.
func (r *Reconciler) configsOfClass(ctx context.Context, class client.Object) []reconcile.Request {
	return r.configsWith(ctx, func(config providerv1.ProviderConfig) bool {
		for _, p := range config.Spec.Profiles {
			ref := p.Template.Topology.ClassRef
			if ref.Name == class.GetName() && ref.Namespace == class.GetNamespace() {
				return true
			}
		}
		return false
	})
}

func (r *Reconciler) configsWith(ctx context.Context, match func(providerv1.ProviderConfig) bool) []reconcile.Request {
	configs := &providerv1.ProviderConfigList{}
	if err := r.Client.List(ctx, configs); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "List ProviderConfigs")
		return nil
	}
	var requests []reconcile.Request
	for _, config := range configs.Items {
		if config.Spec.ProviderRef.Name == r.ProviderName && match(config) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&config)})
		}
	}
	return requests
}

// inputFor returns what the objects emitted for a ProviderConfig depend on.
func (r *Reconciler) inputFor(config providerv1.ProviderConfig) gitops.Input {
	return gitops.Input{
		Instance: r.ProviderName, Namespace: r.Namespace, Environment: r.Environment,
		Config: config.Name, Release: r.Release, Spec: config.Spec, Defaults: r.Defaults,
	}
}
