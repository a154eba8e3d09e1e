// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/openmcp-project/cluster-provider-capi/test/platform"
	"github.com/openmcp-project/cluster-provider-capi/test/scenario"
)

func newDemoCommand() *cobra.Command {
	var (
		o    platform.Options
		once bool
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start a platform, do what a platform owner does, step by step, and run it until Ctrl-C",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			return demo(cmd, o, once)
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", stateDir(), "folder of the platform")
	cmd.Flags().BoolVar(&once, "once", false, "end the platform after the last step")
	return cmd
}

// demo plays the scenario on a new platform.
func demo(cmd *cobra.Command, o platform.Options, once bool) error {
	release, err := claim(o.Dir)
	if err != nil {
		return err
	}
	defer release()
	p, err := platform.Start(cmd.Context(), o)
	if err != nil {
		return err
	}
	defer p.Stop()
	target := scenario.OnPlatform(p)
	target.Out = cmd.OutOrStdout()
	if err := scenario.Run(cmd.Context(), target); err != nil {
		return err
	}
	if once {
		return nil
	}
	cmd.Printf("\nThe platform goes on. In another terminal:\n\n  export KUBECONFIG=%s\n\nCtrl-C ends it all.\n", p.Kubeconfig())
	<-p.Done()
	return p.Err()
}
