// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// sets are the life of a provider set that a platform owner keeps in Git.
var sets = []step{
	{"Apply a ClusterProvider", applyClusterProvider},
	{"init finishes", awaitInit},
	{"The controllers run", awaitDeployment},
	{"Commit a provider set with the provider local to Git, and name it in a ProviderConfig", installSet},
	{"Commit a new version: it is rolled out", bumpSet},
	{"Commit a mistake: Flux's own message is passed on, and the old version goes on", breakSet},
	{"Mend it with another commit", mendSet},
	{"Delete the ProviderConfig", deleteProviderConfig},
	{"Delete the ClusterProvider", deleteClusterProvider},
	{"Nothing is left behind", findLeftovers},
}

// RunSets plays the life of a provider set until it is through or a step fails, and says which.
func RunSets(ctx context.Context, target Target) error {
	if target.Commit == nil {
		return errors.New("the target has no Git server")
	}
	target.ClusterClass = ""
	return run(ctx, target, sets)
}

// commitSet commits the provider set with a version of the provider local, and makes Flux look.
func (p *play) commitSet(ctx context.Context, version, extra string) error {
	manifest, err := manifests.ReadFile("manifests/set/provider.yaml")
	if err != nil {
		return err
	}
	url, err := p.Commit(map[string][]byte{"capi/local/provider.yaml": append(manifest, extra...)})
	if err != nil {
		return err
	}
	p.git, p.setVersionOf = url, version
	p.printf("      committed version %s to %s\n", version, url)
	if err := p.applyManifest(ctx, "providerset.yaml"); err != nil {
		return err
	}
	source := &sourcev1.GitRepository{ObjectMeta: named(systemSpace, "platform")}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, version+extra)
	return p.client.Patch(ctx, source, client.RawPatch(client.Merge.Type(), []byte(patch)))
}

// untilSetRuns waits until the provider of the set runs in a version, and the ProviderConfig is ready.
func (p *play) untilSetRuns(ctx context.Context, version string) error {
	err := p.until(ctx, "wait for the provider set", func(ctx context.Context) (string, error) {
		c, err := p.component(ctx, "local")
		if err != nil {
			return "", err
		}
		if !c.Ready || c.InstalledVersion != version {
			return fmt.Sprintf("component local: installed %q, ready %t, %s: %s", c.InstalledVersion, c.Ready, c.Reason, c.Message), nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	config, conditions := p.providerConfig()
	return p.untilCondition(ctx, config, providerv1.ReadyCondition, conditions)
}

func installSet(ctx context.Context, p *play) error {
	if err := p.commitSet(ctx, "v0.1.0", ""); err != nil {
		return err
	}
	if err := p.untilSetRuns(ctx, "v0.1.0"); err != nil {
		return err
	}
	return p.show(ctx, providerConfigKind)
}

func bumpSet(ctx context.Context, p *play) error {
	if err := p.commitSet(ctx, nextLocal, ""); err != nil {
		return err
	}
	return p.untilSetRuns(ctx, nextLocal)
}

func breakSet(ctx context.Context, p *play) error {
	if err := p.commitSet(ctx, nextLocal, "---\napiVersion: v1\nkind: Nonsense\nmetadata: {name: x, namespace: default}\n"); err != nil {
		return err
	}
	config, conditions := p.providerConfig()
	if err := p.untilSaid(ctx, config, conditions, saying{
		providerv1.ProvidersReadyCondition, providerv1.ReasonFluxFailed, "Nonsense",
	}); err != nil {
		return err
	}
	c, err := p.component(ctx, "local")
	if err != nil || !c.Ready || c.InstalledVersion != nextLocal {
		return fmt.Errorf("the old version does not go on: %+v: %w", c, err)
	}
	return nil
}

func mendSet(ctx context.Context, p *play) error {
	if err := p.commitSet(ctx, nextLocal, "# mended\n"); err != nil {
		return err
	}
	return p.untilSetRuns(ctx, nextLocal)
}
