// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/controller-utils/pkg/logging"
	"github.com/openmcp-project/openmcp-operator/api/constants"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// identityOptions say which instance of the provider a command speaks for.
type identityOptions struct {
	environment  string
	providerName string
	namespace    string
	defaults     string
}

func (o *identityOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.environment, "environment", "", "name of the OpenControlPlane environment; names of ClusterProfiles start with it")
	flags.StringVar(&o.providerName, "provider-name", "", "name of the ClusterProvider object that this instance runs for")
	flags.StringVar(&o.namespace, "namespace", os.Getenv(constants.EnvVariablePodNamespace),
		"namespace that this instance runs in and puts Flux objects into; the default is $"+constants.EnvVariablePodNamespace)
	flags.StringVar(&o.defaults, "defaults", "",
		"YAML file with the parts operator, certManager, core and providerSource of a ProviderConfig's spec, "+
			"which replace those that are built in")
}

// identity checks the flags and reads the file with defaults.
func (o *identityOptions) identity() (controllers.Identity, error) {
	switch {
	case o.providerName == "":
		return controllers.Identity{}, errors.New("--provider-name is missing: give the name of the ClusterProvider")
	case o.environment == "":
		return controllers.Identity{}, errors.New("--environment is missing: give the name of the OpenControlPlane environment")
	case o.namespace == "":
		return controllers.Identity{}, fmt.Errorf("--namespace is missing, and so is $%s: give the namespace that the provider runs in",
			constants.EnvVariablePodNamespace)
	}
	defaults, err := readDefaults(o.defaults)
	return controllers.Identity{
		ProviderName: o.providerName, Environment: o.environment, Namespace: o.namespace, Release: Version, Defaults: defaults,
	}, err
}

// readDefaults returns the built-in defaults, with those of the file in their place.
func readDefaults(path string) (gitops.Defaults, error) {
	defaults := gitops.DefaultDefaults(Version)
	if path == "" {
		return defaults, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return defaults, fmt.Errorf("--defaults: %w", err)
	}
	var file struct {
		Operator       *providerv1.OperatorSpec    `json:"operator"`
		CertManager    *providerv1.CertManagerSpec `json:"certManager"`
		Core           *providerv1.CoreProvider    `json:"core"`
		ProviderSource *providerv1.ProviderSource  `json:"providerSource"`
	}
	if err := yaml.UnmarshalStrict(raw, &file); err != nil {
		return defaults, fmt.Errorf("--defaults: %s: %w", path, err)
	}
	if file.Operator != nil {
		defaults.Operator = *file.Operator
	}
	if file.CertManager != nil {
		defaults.CertManager = *file.CertManager
	}
	if file.Core != nil {
		defaults.Core = *file.Core
	}
	if file.ProviderSource != nil {
		defaults.ProviderSource = file.ProviderSource
	}
	return defaults, nil
}

// clusterOptions say how to reach the platform cluster.
type clusterOptions struct {
	kubeconfig string
}

func (o *clusterOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig of the platform cluster; the default is that of the pod, $KUBECONFIG or ~/.kube/config")
}

// config returns how to reach the platform cluster.
func (o *clusterOptions) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the platform cluster: %w", err)
	}
	// The API server has priorities and fairness of its own; client-go's limit would only slow many Clusters down.
	config.QPS = -1
	return config, nil
}

// setLogger makes everything log as the flags say.
func setLogger() error {
	logger, err := logging.GetLogger()
	if err != nil {
		return fmt.Errorf("set up the log: %w", err)
	}
	ctrl.SetLogger(logger.Logr())
	return nil
}
