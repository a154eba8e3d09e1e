// SPDX-License-Identifier: Apache-2.0

package workload

import "fmt"

// The files of a cluster, in its folder, which is the working directory of its processes.
const (
	caFile             = "ca.crt"
	serverCertFile     = "apiserver.crt"
	serverKeyFile      = "apiserver.key"
	publicTokenFile    = "sa.pub"
	privateTokenFile   = "sa.key"
	authenticationFile = "authentication.yaml"
	managerFile        = "controller-manager.kubeconfig"
)

// controllers that make sense without nodes.
const controllers = "--controllers=namespace-controller,serviceaccount-controller,serviceaccount-token-controller," +
	"garbage-collector-controller," +
	"root-ca-certificate-publisher-controller,clusterrole-aggregation-controller,resourcequota-controller," +
	"validatingadmissionpolicy-status-controller"

func etcdArgs(client, peer string) []string {
	return []string{
		"--name=local", "--data-dir=etcd", "--unsafe-no-fsync",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=local=" + peer,
	}
}

func serverArgs(spec Spec, etcd string) []string {
	args := []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", spec.Port),
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
		"--cert-dir=.", "--client-ca-file=" + caFile, "--tls-cert-file=" + serverCertFile, "--tls-private-key-file=" + serverKeyFile,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + publicTokenFile, "--service-account-signing-key-file=" + privateTokenFile,
		"--authorization-mode=Node,RBAC", "--allow-privileged=true", "--profiling=false", "--shutdown-delay-duration=0s",
	}
	if spec.AuthenticationConfig != "" {
		args = append(args, "--authentication-config="+authenticationFile)
	}
	if spec.Verbose {
		args = append(args, "--v=4")
	}
	return args
}

func managerArgs() []string {
	return []string{
		"--kubeconfig=" + managerFile, controllers, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0",
		"--profiling=false", "--root-ca-file=" + caFile, "--service-account-private-key-file=" + privateTokenFile,
	}
}

// Endpoint is the URL of the API server.
func Endpoint(spec Spec) string { return fmt.Sprintf("https://%s:%d", spec.Host, spec.Port) }
