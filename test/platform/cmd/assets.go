// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openmcp-project/cluster-provider-capi/test/platform"
)

func newAssetsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "assets",
		Short: "Build etcd and kube-apiserver, and print the folder that has them, for KUBEBUILDER_ASSETS",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := platform.Assets(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), dir)
			return err
		},
	}
}
