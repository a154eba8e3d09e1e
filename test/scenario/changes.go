// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// nextLocal is the version that the provider local is upgraded to.
const nextLocal = "v0.2.0"

// upgradeProvider changes the version of the provider local, as a commit to Git would, and watches the Cluster meanwhile.
func upgradeProvider(ctx context.Context, p *play) error {
	p.Local = p.Local[:strings.LastIndex(p.Local, ":")+1] + nextLocal
	if err := p.applyManifest(ctx, "providerconfig.yaml"); err != nil {
		return err
	}
	cluster, conditions := p.odd()
	return p.until(ctx, "wait for the upgrade", func(ctx context.Context) (string, error) {
		if missing, err := p.get(ctx, cluster); missing != "" || err != nil {
			return missing, err
		}
		if c := apimeta.FindStatusCondition(conditions(), providerv1.ReadyCondition); c == nil || c.Status != metav1.ConditionTrue {
			return "", fmt.Errorf("%s is not Ready any more: %+v", p.name(cluster), c)
		}
		c, err := p.component(ctx, "local")
		if err != nil {
			return "", err
		}
		if !c.Ready || c.InstalledVersion != nextLocal {
			return fmt.Sprintf("component local: installed %s, ready %t, %s: %s", c.InstalledVersion, c.Ready, c.Reason, c.Message), nil
		}
		return "", nil
	})
}

// setVersion asks for another Kubernetes version.
func (p *play) setVersion(ctx context.Context, version string) error {
	cluster, _ := p.odd()
	patch := fmt.Sprintf(`{"spec":{"kubernetes":{"version":%q}}}`, version)
	return p.client.Patch(ctx, cluster, client.RawPatch(client.Merge.Type(), []byte(patch)))
}

func upgradeKubernetes(ctx context.Context, p *play) error {
	if err := p.setVersion(ctx, "1.36"); err != nil {
		return err
	}
	cluster, conditions := p.odd()
	err := p.until(ctx, "wait for the upgrade", func(ctx context.Context) (string, error) {
		if missing, err := p.get(ctx, cluster); missing != "" || err != nil {
			return missing, err
		}
		c := apimeta.FindStatusCondition(conditions(), providerv1.ReadyCondition)
		if running := cluster.Labels[clustersv1.K8sVersionLabel]; running != "1.36.3" || c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("%s runs %s: %s", p.name(cluster), running, c.Message), nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	if err := p.setVersion(ctx, "1.35.0"); err != nil {
		return err
	}
	if err := p.untilSaid(ctx, cluster, conditions, saying{
		providerv1.AcceptedCondition, providerv1.ReasonDowngradeNotSupported, "1.36.3",
	}); err != nil {
		return err
	}
	if err := p.setVersion(ctx, "1.36.3"); err != nil {
		return err
	}
	return p.untilCondition(ctx, cluster, providerv1.ReadyCondition, conditions)
}

func dropProviderInUse(ctx context.Context, p *play) error {
	config, conditions := p.providerConfig()
	patch := client.RawPatch(client.Merge.Type(), []byte(`{"spec":{"providers":[]}}`))
	if err := p.client.Patch(ctx, config, patch); err != nil {
		return err
	}
	if err := p.untilSaid(ctx, config, conditions, saying{
		providerv1.ProvidersReadyCondition, providerv1.ReasonDeletionBlocked, "LocalCluster default/odd",
	}); err != nil {
		return err
	}
	cluster, clusterConditions := p.odd()
	if err := p.untilCondition(ctx, cluster, providerv1.ReadyCondition, clusterConditions); err != nil {
		return err
	}
	if err := p.applyManifest(ctx, "providerconfig.yaml"); err != nil {
		return err
	}
	return p.untilCondition(ctx, config, providerv1.ReadyCondition, conditions)
}
