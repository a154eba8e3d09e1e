// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/spf13/cobra"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// Version is the release of the binary. The linker sets it.
var Version = "dev"

// NewCommand returns the root command.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   providerv1.ProviderName,
		Short: "Brings Cluster API to OpenControlPlane, through Flux",
		Long: "cluster-provider-capi turns ProviderConfigs into Flux objects that install the CAPI Operator and any CAPI provider, " +
			"OpenControlPlane Clusters into CAPI Clusters, and AccessRequests into kubeconfigs.",
		Version:       Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(newInitCommand(), newRunCommand(), newRenderCommand())
	return cmd
}
