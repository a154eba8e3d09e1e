// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/openmcp-project/controller-utils/pkg/logging"

	"github.com/openmcp-project/cluster-provider-capi/api/install"
	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers"
)

// shutdownTimeout is how long reconciliations that have begun may take to end.
const shutdownTimeout = 30 * time.Second

// runOptions are the flags of run that are not shared with other commands.
type runOptions struct {
	leaderElect   bool
	metricsAddr   string
	secureMetrics bool
	probeAddr     string
}

func (o *runOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "let only one of several replicas work")
	flags.StringVar(&o.metricsAddr, "metrics-bind-address", "0", "address that metrics are served on, such as :8080; 0 means not at all")
	flags.BoolVar(&o.secureMetrics, "metrics-secure", true, "serve metrics by HTTPS, to clients that the platform cluster authorizes")
	flags.StringVar(&o.probeAddr, "health-probe-bind-address", ":8081", "address that /healthz and /readyz are served on; 0 means not at all")
}

func newRunCommand() *cobra.Command {
	var (
		id      identityOptions
		cluster clusterOptions
		options runOptions
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the controllers",
		Long: "run reconciles ProviderConfigs, and the Clusters and AccessRequests whose profiles belong to them. " +
			"The platform cluster must have been prepared by init.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			identity, err := id.identity()
			if err != nil {
				return err
			}
			if err := setLogger(); err != nil {
				return err
			}
			config, err := cluster.config()
			if err != nil {
				return err
			}
			mgr, err := newManager(config, identity, options)
			if err != nil {
				return err
			}
			if err := mgr.Start(cmd.Context()); err != nil {
				return fmt.Errorf("run the controllers: %w", err)
			}
			return nil
		},
	}
	id.addFlags(cmd.Flags())
	cluster.addFlags(cmd.Flags())
	options.addFlags(cmd.Flags())
	logging.InitFlags(cmd.Flags())
	return cmd
}

// newManager returns a manager with all controllers.
func newManager(config *rest.Config, identity controllers.Identity, o runOptions) (ctrl.Manager, error) {
	grace := shutdownTimeout
	metrics := metricsserver.Options{BindAddress: o.metricsAddr, SecureServing: o.secureMetrics}
	if o.secureMetrics {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        install.Scheme(),
		Cache:                         controllers.CacheOptions(),
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                       metrics,
		HealthProbeBindAddress:        o.probeAddr,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaseName(identity.ProviderName),
		LeaderElectionNamespace:       identity.Namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &grace,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, fmt.Errorf("set up the health checks: %w", err)
		}
	}
	return mgr, controllers.Setup(mgr, identity)
}

// leaseName returns the name of the lease by which the replicas of one instance elect their leader. The name of a
// ClusterProvider is a valid part of it.
func leaseName(providerName string) string {
	return strings.ToLower(providerName) + "." + providerv1.ProviderName
}
