// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	providerapi "github.com/openmcp-project/openmcp-operator/api/provider/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

func returnAccess(ctx context.Context, p *play) error {
	request, conditions := p.accessRequest()
	if err := p.remove(ctx, request, conditions); err != nil {
		return err
	}
	user, err := client.New(p.access, client.Options{})
	if err != nil {
		return fmt.Errorf("reach the new cluster: %w", err)
	}
	err = user.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("shop"))
	if !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("the kubeconfig should be worthless, but the answer is: %w", err)
	}
	p.printf("      the kubeconfig is worthless now\n")
	return nil
}

func returnCluster(ctx context.Context, p *play) error {
	cluster, missing, err := p.cluster(ctx)
	if missing != "" || err != nil {
		return fmt.Errorf("find the Cluster: %s %w", missing, err)
	}
	request := &clustersv1.ClusterRequest{ObjectMeta: named(teamSpace, requestName)}
	if err := p.remove(ctx, request, func() []metav1.Condition { return request.Status.Conditions }); err != nil {
		return err
	}
	return p.until(ctx, "wait until the Cluster is gone", func(ctx context.Context) (string, error) {
		if missing, err := p.get(ctx, cluster); missing != "" || err != nil {
			return "", err
		}
		return p.stillThere(cluster, cluster.Status.Conditions), nil
	})
}

func deleteProviderConfig(ctx context.Context, p *play) error {
	if err := p.deleteManifests(ctx, p.ClusterClass); err != nil {
		return err
	}
	config, conditions := p.providerConfig()
	return p.remove(ctx, config, conditions)
}

// deleteManifests deletes objects as `kubectl delete -f` does.
func (p *play) deleteManifests(ctx context.Context, text string) error {
	for obj, err := range decode(text) {
		if err != nil {
			return err
		}
		if err := p.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s: %w", describe(obj), err)
		}
		p.printf("      deleted %s\n", describe(obj))
	}
	return nil
}

func deleteClusterProvider(ctx context.Context, p *play) error {
	provider := &providerapi.ClusterProvider{ObjectMeta: named("", instance)}
	if err := p.remove(ctx, provider, func() []metav1.Condition { return nil }); err != nil {
		return err
	}
	defaults := &corev1.ConfigMap{ObjectMeta: named(systemSpace, "capi-defaults")}
	return client.IgnoreNotFound(p.client.Delete(ctx, defaults))
}

// instanceLabel holds the name of the ClusterProvider, or of the Helm release, that a Deployment belongs to.
const instanceLabel = "app.kubernetes.io/instance"

// findLeftovers looks for anything that the provider, Flux or the CAPI Operator should have taken away.
func findLeftovers(ctx context.Context, p *play) error {
	ours := client.MatchingLabels{providerv1.ManagedByLabel: instance}
	return p.until(ctx, "look for what is left", func(ctx context.Context) (string, error) {
		var found []string
		for list, options := range map[client.ObjectList][]client.ListOption{
			&kustomizev1.KustomizationList{}:         {ours},
			&helmv2.HelmReleaseList{}:                {ours},
			&sourcev1.OCIRepositoryList{}:            {ours},
			&clustersv1.ClusterProfileList{}:         {ours},
			&corev1.SecretList{}:                     {ours},
			&operatorv1.CoreProviderList{}:           nil,
			&operatorv1.InfrastructureProviderList{}: nil,
			&clusterv1.ClusterList{}:                 nil,
			&clusterv1.ClusterClassList{}:            nil,
			&clustersv1.ClusterList{}:                nil,
			&clustersv1.AccessRequestList{}:          nil,
			&appsv1.DeploymentList{}:                 {client.InNamespace("local-system")},
			&appsv1.DeploymentList{}:                 {client.InNamespace("capi-system")},
			&appsv1.DeploymentList{}:                 {client.InNamespace(systemSpace), client.MatchingLabels{instanceLabel: instance}},
			&appsv1.DeploymentList{}:                 {client.InNamespace(systemSpace), client.MatchingLabels{instanceLabel: "capi-operator"}},
		} {
			err := p.client.List(ctx, list, options...)
			if apimeta.IsNoMatchError(err) {
				continue
			} else if err != nil {
				return "", err
			}
			err = apimeta.EachListItem(list, func(item runtime.Object) error {
				obj, ok := item.(client.Object)
				if !ok {
					return errors.New("a list item is no object")
				}
				found = append(found, p.name(obj))
				return nil
			})
			if err != nil {
				return "", err
			}
		}
		return strings.Join(found, ", "), nil
	})
}
