// SPDX-License-Identifier: Apache-2.0

// Command cmd starts a whole platform on this machine, and stops it.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	if err := run(); err != nil {
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The Git server writes each request into the standard log.
	log.SetOutput(io.Discard)
	root := &cobra.Command{
		Use:          "platform",
		Short:        "A whole OpenControlPlane platform on this machine, as processes",
		SilenceUsage: true,
	}
	root.AddCommand(newUpCommand(), newDemoCommand(), newDownCommand(), newAssetsCommand())
	return root.ExecuteContext(ctx)
}
