// SPDX-License-Identifier: Apache-2.0

// Command cluster-provider-capi is the Cluster API provider of OpenControlPlane.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openmcp-project/cluster-provider-capi/cmd/cluster-provider-capi/app"
)

func main() {
	if err := app.NewCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
