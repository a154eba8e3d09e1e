// SPDX-License-Identifier: Apache-2.0

// Command cluster-api-provider-local is a Cluster API provider, of infrastructure and control plane in one, whose clusters
// are real API servers: processes of the machine that it runs on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	controlplanev1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/controlplane/v1alpha1"
	infrav1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/infrastructure/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/local/controlplane"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/local/infrastructure"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/local/workload"
)

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are what flags and environment say.
type options struct {
	probes, metrics string
	leaderElection  bool
	namespace       string
	binaries, data  string
}

// ignored are flags that the Cluster API Operator may set on every manager; they mean nothing here.
var ignored = []string{
	"diagnostics-address", "feature-gates", "insecure-diagnostics", "max-concurrent-reconciles", "metrics-bind-addr",
	"namespace", "profiler-address", "sync-period", "v", "webhook-cert-dir", "webhook-host", "webhook-port",
}

func parse(args []string) (options, error) {
	o := options{
		namespace: os.Getenv("POD_NAMESPACE"), binaries: os.Getenv("LOCAL_BINARIES"), data: os.Getenv("LOCAL_DATA"),
	}
	flags := flag.NewFlagSet("cluster-api-provider-local", flag.ContinueOnError)
	config.RegisterFlags(flags)
	flags.StringVar(&o.probes, "health-probe-bind-address", ":9440", "where /healthz and /readyz are served")
	flags.StringVar(&o.probes, "health-addr", ":9440", "the same as --health-probe-bind-address")
	flags.StringVar(&o.metrics, "metrics-bind-address", "0", "where metrics are served; 0 is nowhere")
	flags.BoolVar(&o.leaderElection, "leader-elect", false, "wait until no other instance is the leader")
	for _, name := range ignored {
		flags.String(name, "", "ignored")
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.binaries == "" || o.data == "" {
		return o, errors.New("LOCAL_BINARIES and LOCAL_DATA must name the folders of the binaries and of the clusters' data")
	}
	return o, nil
}

// run runs the provider until the context is done. The processes of the clusters end before it does.
func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	logger := zap.New()
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	rest, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the platform cluster: %w", err)
	}
	mgr, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme:                        scheme,
		HealthProbeBindAddress:        o.probes,
		Metrics:                       server.Options{BindAddress: o.metrics},
		LeaderElection:                o.leaderElection,
		LeaderElectionID:              "cluster-api-provider-local",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		// The provider may read Secrets, but not list those of all namespaces.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := setup(ctx, mgr, o); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newScheme knows all kinds that the provider reads or writes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, utilerrors.NewAggregate([]error{
		clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme),
		infrav1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme),
	})
}

// setup adds to the manager all that runs in it.
func setup(ctx context.Context, mgr ctrl.Manager, o options) error {
	host, err := workload.NewHost(o.binaries, o.data)
	if err != nil {
		return err
	}
	clusters := &infrastructure.Reconciler{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()}
	planes := &controlplane.Reconciler{Client: mgr.GetClient(), Host: host}
	return utilerrors.NewAggregate([]error{
		mgr.Add(host), clusters.SetupWithManager(ctx, mgr), planes.SetupWithManager(mgr),
		mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping),
	})
}
