// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerapi "github.com/openmcp-project/openmcp-operator/api/provider/v1alpha1"

	"github.com/openmcp-project/cluster-provider-capi/api/install"
)

// Target is the platform that the scenario is played on.
type Target struct {
	// Config reaches the platform cluster, as an administrator.
	Config *rest.Config

	// Image is the image of the provider.
	Image string

	// Defaults is the content of the file for the provider's flag --defaults; empty when it can use those built in.
	Defaults string

	// Local is where the CAPI Operator fetches v0.1.0 of the CAPI provider "local" from: an OCI reference.
	Local string

	// ClusterClass holds the ClusterClass "local" and its templates, as YAML.
	ClusterClass string

	// Commit commits files to the Git repository of a platform owner, and returns its URL; nil when there is no Git server.
	Commit func(files map[string][]byte) (url string, err error)

	// Out is where the steps are shown.
	Out io.Writer
}

// step is one thing that somebody does, and sees that it worked.
type step struct {
	title string
	run   func(ctx context.Context, p *play) error
}

// steps are the scenario.
var steps = []step{
	{"Apply a ClusterProvider: openmcp-operator runs `cluster-provider-capi init` as a Job", applyClusterProvider},
	{"init installs the CAPI Operator and CAPI's core provider through Flux", awaitInit},
	{"openmcp-operator runs the controllers as a Deployment", awaitDeployment},
	{"Apply a ProviderConfig with the CAPI provider local and one profile", applyProviderConfig},
	{"Apply the ClusterClass that the profile names: the ProviderConfig picks it up and offers a ClusterProfile", applyClusterClass},
	{"Ask for a cluster: ClusterRequest -> Cluster -> CAPI Cluster -> an API server that answers", requestCluster},
	{"Ask for access: AccessRequest -> a kubeconfig with the permissions that were asked for", requestAccess},
	{"Use the kubeconfig: create a ConfigMap, and be refused what was not asked for", useAccess},
	{"Give the access back: nothing of it is left in the cluster", returnAccess},
	{"Give the cluster back", returnCluster},
	{"Delete the ProviderConfig: providers, core provider and CAPI Operator go in this order", deleteProviderConfig},
	{"Delete the ClusterProvider", deleteClusterProvider},
	{"Nothing is left behind", findLeftovers},
}

// play is the scenario while it is played.
type play struct {
	Target
	client client.Client
	access *rest.Config
	began  time.Time

	// git and setVersionOf are the repository of the provider set, and the version that it asks for.
	git, setVersionOf string
}

// Run plays the scenario until it is through or a step fails, and says which.
func Run(ctx context.Context, target Target) error { return run(ctx, target, steps) }

func run(ctx context.Context, target Target, steps []step) error {
	p, err := newPlay(target)
	if err != nil {
		return err
	}
	for i, step := range steps {
		began := time.Now()
		p.printf("\n[%d/%d] %s\n", i+1, len(steps), step.title)
		if err := step.run(ctx, p); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, step.title, err)
		}
		p.printf("      done in %.1f s\n", time.Since(began).Seconds())
	}
	p.printf("\nAll %d steps worked, in %.0f s.\n", len(steps), time.Since(p.began).Seconds())
	return nil
}

func newPlay(target Target) (*play, error) {
	scheme := install.Scheme()
	if err := providerapi.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(target.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the platform cluster: %w", err)
	}
	if target.Out == nil {
		target.Out = io.Discard
	}
	return &play{Target: target, client: c, began: time.Now()}, nil
}

func (p *play) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Out, format, args...)
}
