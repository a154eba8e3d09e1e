// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"strconv"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

const (
	instance       = "capi"
	systemSpace    = "openmcp-system"
	teamSpace      = "team-a"
	requestName    = "orders"
	clusterProfile = "e2e.capi.local.small"
)

var (
	providerConfigKind = providerv1.GroupVersion.WithKind("ProviderConfig")
	clusterKind        = clustersv1.GroupVersion.WithKind("Cluster")
	accessRequestKind  = clustersv1.GroupVersion.WithKind("AccessRequest")
	clusterProfileKind = clustersv1.GroupVersion.WithKind("ClusterProfile")
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func applyClusterProvider(ctx context.Context, p *play) error {
	if err := p.applyManifest(ctx, "clusterprovider.yaml"); err != nil {
		return err
	}
	job := &batchv1.Job{ObjectMeta: named(systemSpace, "cp-"+instance+"-init")}
	return p.until(ctx, "wait for the Job", func(ctx context.Context) (string, error) { return p.get(ctx, job) })
}

func awaitInit(ctx context.Context, p *play) error {
	job := &batchv1.Job{ObjectMeta: named(systemSpace, "cp-"+instance+"-init")}
	err := p.until(ctx, "wait for the Job", func(ctx context.Context) (string, error) {
		missing, err := p.get(ctx, job)
		if missing != "" || err != nil {
			return missing, err
		}
		if job.Status.Failed > 0 {
			return "", fmt.Errorf("init failed: read the log of its pod (kubectl -n %s logs job/%s)", systemSpace, job.Name)
		}
		if job.Status.Succeeded == 0 {
			return "the Job runs", nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	release := &helmv2.HelmRelease{ObjectMeta: named(systemSpace, instance+"-operator")}
	if err := p.untilCondition(ctx, release, "Ready", func() []metav1.Condition { return release.Status.Conditions }); err != nil {
		return err
	}
	core := &kustomizev1.Kustomization{ObjectMeta: named(systemSpace, instance+"-core")}
	if err := p.untilCondition(ctx, core, "Ready", func() []metav1.Condition { return core.Status.Conditions }); err != nil {
		return err
	}
	return p.show(ctx, helmv2.GroupVersion.WithKind("HelmRelease"), kustomizev1.GroupVersion.WithKind("Kustomization"))
}

func awaitDeployment(ctx context.Context, p *play) error {
	deployment := &appsv1.Deployment{ObjectMeta: named(systemSpace, "cp-"+instance)}
	return p.until(ctx, "wait for the Deployment", func(ctx context.Context) (string, error) {
		missing, err := p.get(ctx, deployment)
		if missing != "" || err != nil {
			return missing, err
		}
		if deployment.Status.AvailableReplicas == 0 {
			return "the Deployment has no available pod yet", nil
		}
		return "", nil
	})
}

func (p *play) providerConfig() (*providerv1.ProviderConfig, func() []metav1.Condition) {
	config := &providerv1.ProviderConfig{ObjectMeta: named("", "local")}
	return config, func() []metav1.Condition { return config.Status.Conditions }
}

func applyProviderConfig(ctx context.Context, p *play) error {
	if err := p.applyManifest(ctx, "providerconfig.yaml"); err != nil {
		return err
	}
	config, conditions := p.providerConfig()
	if err := p.untilCondition(ctx, config, providerv1.ProvidersReadyCondition, conditions); err != nil {
		return err
	}
	c := apimeta.FindStatusCondition(conditions(), providerv1.ProfilesPublishedCondition)
	if c != nil && c.Status == metav1.ConditionFalse {
		p.printf("      as it should, it says: %s: %s\n", c.Reason, c.Message)
	}
	return nil
}

func applyClusterClass(ctx context.Context, p *play) error {
	if err := p.apply(ctx, p.ClusterClass); err != nil {
		return err
	}
	config, conditions := p.providerConfig()
	if err := p.untilCondition(ctx, config, providerv1.ReadyCondition, conditions); err != nil {
		return err
	}
	for _, c := range config.Status.Components {
		p.printf("      component %-14s %-12s wanted %-8s installed %-8s ready %t\n", c.Type, c.Name, c.Version, c.InstalledVersion, c.Ready)
	}
	return p.show(ctx, providerConfigKind, clusterProfileKind)
}

// cluster reads the Cluster that the ClusterRequest has got.
func (p *play) cluster(ctx context.Context) (*clustersv1.Cluster, string, error) {
	request := &clustersv1.ClusterRequest{ObjectMeta: named(teamSpace, requestName)}
	if missing, err := p.get(ctx, request); missing != "" || err != nil {
		return nil, missing, err
	}
	if request.Status.Cluster == nil {
		return nil, "the ClusterRequest has not been scheduled yet", nil
	}
	cluster := &clustersv1.Cluster{ObjectMeta: named(request.Status.Cluster.Namespace, request.Status.Cluster.Name)}
	missing, err := p.get(ctx, cluster)
	return cluster, missing, err
}

func requestCluster(ctx context.Context, p *play) error {
	if err := p.applyManifest(ctx, "clusterrequest.yaml"); err != nil {
		return err
	}
	var cluster *clustersv1.Cluster
	err := p.until(ctx, "wait for the Cluster", func(ctx context.Context) (string, error) {
		var missing string
		var err error
		if cluster, missing, err = p.cluster(ctx); missing != "" || err != nil {
			return missing, err
		}
		if c := apimeta.FindStatusCondition(cluster.Status.Conditions, providerv1.ReadyCondition); c == nil {
			return "the Cluster has no conditions yet", nil
		} else if c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("Cluster: %s: %s", c.Reason, c.Message), nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	if len(cluster.Status.Endpoints) == 0 {
		return fmt.Errorf("%s is Ready without an endpoint", p.name(cluster))
	}
	for _, endpoint := range cluster.Status.Endpoints {
		p.printf("      endpoint %s: %s\n", endpoint.Name, endpoint.URL)
	}
	return p.show(ctx, clusterKind, clusterv1.GroupVersion.WithKind("Cluster"))
}

func (p *play) accessRequest() (*clustersv1.AccessRequest, func() []metav1.Condition) {
	request := &clustersv1.AccessRequest{ObjectMeta: named(teamSpace, requestName)}
	return request, func() []metav1.Condition { return request.Status.Conditions }
}

func requestAccess(ctx context.Context, p *play) error {
	if err := p.applyManifest(ctx, "accessrequest.yaml"); err != nil {
		return err
	}
	request, conditions := p.accessRequest()
	if err := p.untilCondition(ctx, request, providerv1.ReadyCondition, conditions); err != nil {
		return err
	}
	if !request.Status.IsGranted() || request.Status.SecretRef == nil {
		return fmt.Errorf("%s is Ready but not granted: phase %s", p.name(request), request.Status.Phase)
	}
	secret := &corev1.Secret{ObjectMeta: named(teamSpace, request.Status.SecretRef.Name)}
	if missing, err := p.get(ctx, secret); missing != "" || err != nil {
		return fmt.Errorf("read the kubeconfig: %s %w", missing, err)
	}
	access, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	p.access = access
	expires, err := strconv.ParseInt(string(secret.Data["expirationTimestamp"]), 10, 64)
	if err != nil {
		return fmt.Errorf("read expirationTimestamp of %s: %w", p.name(secret), err)
	}
	p.printf("      Secret %s/%s, valid until %s\n", secret.Namespace, secret.Name, time.Unix(expires, 0).UTC().Format(time.RFC3339))
	return p.show(ctx, providerConfigKind, clusterKind, accessRequestKind)
}

func useAccess(ctx context.Context, p *play) error {
	user, err := client.New(p.access, client.Options{})
	if err != nil {
		return fmt.Errorf("reach the new cluster: %w", err)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: named("shop", "greeting"), Data: map[string]string{"hello": "world"}}
	if err := user.Create(ctx, configMap); err != nil {
		return fmt.Errorf("create a ConfigMap in the new cluster: %w", err)
	}
	p.printf("      ConfigMap shop/greeting is created in the new cluster\n")
	for what, forbidden := range map[string]error{
		"delete the ConfigMap": user.Delete(ctx, configMap),
		"list all Secrets":     user.List(ctx, &corev1.SecretList{}),
		"list ClusterRoles":    user.List(ctx, &rbacv1.ClusterRoleList{}),
	} {
		if !apierrors.IsForbidden(forbidden) {
			return fmt.Errorf("%s: it should be forbidden, but the answer is: %w", what, forbidden)
		}
		p.printf("      %s: refused, as it should be\n", what)
	}
	return nil
}
