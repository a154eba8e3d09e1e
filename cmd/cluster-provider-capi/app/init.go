// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/controller-utils/pkg/logging"

	"github.com/openmcp-project/cluster-provider-capi/api/install"
	"github.com/openmcp-project/cluster-provider-capi/controllers"
)

// initTimeout leaves a chart and the images of the CAPI Operator and of CAPI the time to arrive.
const initTimeout = 10 * time.Minute

func newInitCommand() *cobra.Command {
	var (
		id      identityOptions
		cluster clusterOptions
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Install the CRDs, the CAPI Operator and the core provider, and wait until they work",
		Long: "init prepares the platform cluster for run: it installs the CRDs of this provider and, through Flux, the CAPI Operator and " +
			"the core provider, as the oldest ProviderConfig asks for or, as long as there is none, by the defaults. It says what it " +
			"waits for, and fails with what is missing when the timeout is over.",
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
			c, err := client.New(config, client.Options{Scheme: install.Scheme()})
			if err != nil {
				return fmt.Errorf("reach the platform cluster: %w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return prepare(ctx, c, identity, cmd.OutOrStdout())
		},
	}
	id.addFlags(cmd.Flags())
	cluster.addFlags(cmd.Flags())
	cmd.Flags().DurationVar(&timeout, "timeout", initTimeout, "how long to wait")
	logging.InitFlags(cmd.Flags())
	return cmd
}

// prepare prepares the platform cluster, and prints what it does and waits for.
func prepare(ctx context.Context, c client.Client, identity controllers.Identity, out io.Writer) error {
	began := time.Now()
	tell := func(message string) {
		_, _ = fmt.Fprintf(out, "%4ds  %s\n", int(time.Since(began).Seconds()), message)
	}
	if err := controllers.Prepare(ctx, c, identity, tell); err != nil {
		return fmt.Errorf("prepare the platform cluster: %w", err)
	}
	tell("the platform cluster is prepared")
	return nil
}
