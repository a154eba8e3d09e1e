// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// mistakes are what people get wrong, what they are told, and that they can mend it; and changes of what runs.
var mistakes = []step{
	{"Apply a ClusterProvider", applyClusterProvider},
	{"init finishes", awaitInit},
	{"The controllers run", awaitDeployment},
	{"Apply a ProviderConfig with a mistake in each part: each is named", applyMistakes},
	{"Mend the ProviderConfig", mendProviderConfig},
	{"Ask for a Kubernetes version that is not supported: nothing is made, and access has to wait", askForOddVersion},
	{"Ask for a supported version: the same Cluster and AccessRequest become ready", mendVersion},
	{"Upgrade the provider local: the Cluster stays Ready", upgradeProvider},
	{"Upgrade Kubernetes, and fail to downgrade it", upgradeKubernetes},
	{"Drop the provider while the Cluster needs it: it stays, and says for whom", dropProviderInUse},
	{"Delete the Cluster first: the AccessRequest is let go", deleteClusterFirst},
	{"Delete the ProviderConfig", deleteProviderConfig},
	{"Delete the ClusterProvider", deleteClusterProvider},
	{"Nothing is left behind", findLeftovers},
}

// RunMistakes plays what people get wrong until it is through or a step fails, and says which.
func RunMistakes(ctx context.Context, target Target) error { return run(ctx, target, mistakes) }

// saying is what a condition is expected to say: its reason, and a part of its message.
type saying struct{ condition, reason, part string }

// untilSaid waits until a condition of an object says what is expected.
func (p *play) untilSaid(ctx context.Context, obj client.Object, conditions func() []metav1.Condition, want saying) error {
	return p.until(ctx, "wait for "+p.name(obj), func(ctx context.Context) (string, error) {
		missing, err := p.get(ctx, obj)
		if missing != "" || err != nil {
			return missing, err
		}
		c := apimeta.FindStatusCondition(conditions(), want.condition)
		if c == nil || c.Reason != want.reason || !strings.Contains(c.Message, want.part) {
			return fmt.Sprintf("%s does not say %s: %s yet", p.name(obj), want.condition, want.reason), nil
		}
		p.printf("      it says: %s: %s: %s\n", want.condition, want.reason, c.Message)
		return "", nil
	})
}

// component returns what the ProviderConfig says of a component.
func (p *play) component(ctx context.Context, name string) (providerv1.Component, error) {
	config, _ := p.providerConfig()
	if missing, err := p.get(ctx, config); missing != "" || err != nil {
		return providerv1.Component{}, err
	}
	for _, c := range config.Status.Components {
		if c.Name == name {
			return c, nil
		}
	}
	return providerv1.Component{}, nil
}

func applyMistakes(ctx context.Context, p *play) error {
	if err := p.applyManifest(ctx, "mistakes.yaml"); err != nil {
		return err
	}
	config, conditions := p.providerConfig()
	if err := p.untilSaid(ctx, config, conditions, saying{
		providerv1.CredentialsReadyCondition, providerv1.ReasonSecretNotFound, "default/credentials",
	}); err != nil {
		return err
	}
	if err := p.untilSaid(ctx, config, conditions, saying{
		providerv1.ProfilesPublishedCondition, providerv1.ReasonClusterClassNotFound, "default/local",
	}); err != nil {
		return err
	}
	for _, expected := range []struct{ name, reason, part string }{
		{"local", providerv1.ReasonProviderFailed, "v0.9.9"},
		{"nowhere", providerv1.ReasonProviderFailed, "nowhere"},
		{"secretive", providerv1.ReasonSecretNotFound, "default/credentials"},
	} {
		err := p.until(ctx, "wait for component "+expected.name, func(ctx context.Context) (string, error) {
			c, err := p.component(ctx, expected.name)
			if err != nil {
				return "", err
			}
			if c.Reason != expected.reason || !strings.Contains(c.Message, expected.part) {
				return fmt.Sprintf("component %s does not say %s yet, but %s: %s", expected.name, expected.reason, c.Reason, c.Message), nil
			}
			p.printf("      component %s says: %s: %s\n", c.Name, c.Reason, c.Message)
			return "", nil
		})
		if err != nil {
			return err
		}
	}
	secretive := &kustomizev1.Kustomization{ObjectMeta: named(systemSpace, instance+"-controlplane-secretive")}
	if missing, err := p.get(ctx, secretive); missing == "" || err != nil {
		return fmt.Errorf("%s should not exist: %w", p.name(secretive), err)
	}
	return p.show(ctx, providerConfigKind)
}

func mendProviderConfig(ctx context.Context, p *play) error {
	if err := applyProviderConfig(ctx, p); err != nil {
		return err
	}
	return applyClusterClass(ctx, p)
}

func (p *play) odd() (*clustersv1.Cluster, func() []metav1.Condition) {
	cluster := &clustersv1.Cluster{ObjectMeta: named("default", "odd")}
	return cluster, func() []metav1.Condition { return cluster.Status.Conditions }
}

func (p *play) early() (*clustersv1.AccessRequest, func() []metav1.Condition) {
	request := &clustersv1.AccessRequest{ObjectMeta: named("default", "early")}
	return request, func() []metav1.Condition { return request.Status.Conditions }
}

func askForOddVersion(ctx context.Context, p *play) error {
	if err := p.applyManifest(ctx, "cluster.yaml"); err != nil {
		return err
	}
	cluster, conditions := p.odd()
	if err := p.untilSaid(ctx, cluster, conditions, saying{
		providerv1.AcceptedCondition, providerv1.ReasonVersionNotSupported, "1.36.3",
	}); err != nil {
		return err
	}
	request, conditions := p.early()
	if err := p.untilSaid(ctx, request, conditions, saying{
		providerv1.ClusterFoundCondition, providerv1.ReasonClusterNotReady, "",
	}); err != nil {
		return err
	}
	clusters := &clusterv1.ClusterList{}
	if err := p.client.List(ctx, clusters); err != nil {
		return err
	}
	if len(clusters.Items) > 0 {
		return fmt.Errorf("there should be no CAPI Cluster, but there is %s", p.name(&clusters.Items[0]))
	}
	return nil
}

func mendVersion(ctx context.Context, p *play) error {
	cluster, conditions := p.odd()
	patch := client.RawPatch(client.Merge.Type(), []byte(`{"spec":{"kubernetes":{"version":"1.35"}}}`))
	if err := p.client.Patch(ctx, cluster, patch); err != nil {
		return err
	}
	if err := p.untilCondition(ctx, cluster, providerv1.ReadyCondition, conditions); err != nil {
		return err
	}
	request, conditions := p.early()
	return p.untilCondition(ctx, request, providerv1.ReadyCondition, conditions)
}

func deleteClusterFirst(ctx context.Context, p *play) error {
	cluster, conditions := p.odd()
	if err := p.remove(ctx, cluster, conditions); err != nil {
		return err
	}
	request, conditions := p.early()
	if err := p.untilSaid(ctx, request, conditions, saying{
		providerv1.ClusterFoundCondition, providerv1.ReasonClusterNotFound, "odd",
	}); err != nil {
		return err
	}
	return p.remove(ctx, request, conditions)
}
