// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Parse returns how to reach the cluster of a kubeconfig's current context, and until when its client certificate is
// valid: never, that is the zero time, without one. It reads nothing but its argument and runs nothing. A kubeconfig that
// would need more, or that is not whole, is refused with ErrRefused and the name of the field.
func Parse(kubeconfig []byte) (*rest.Config, time.Time, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		// What the decoder says may quote what it could not decode.
		return nil, time.Time{}, refuse("it is not a kubeconfig")
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok || current == nil {
		return nil, time.Time{}, refuse("current-context names no context")
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil {
		return nil, time.Time{}, refuse("the current context names no cluster")
	}
	if user == nil {
		return nil, time.Time{}, refuse("the current context names no user")
	}
	if err := checkCluster(cluster); err != nil {
		return nil, time.Time{}, err
	}
	notAfter, err := checkUser(user)
	if err != nil {
		return nil, time.Time{}, err
	}
	return &rest.Config{
		Host:        cluster.Server,
		BearerToken: user.Token,
		Username:    user.Username,
		Password:    user.Password,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName,
			CAData:     cluster.CertificateAuthorityData,
			CertData:   user.ClientCertificateData,
			KeyData:    user.ClientKeyData,
		},
	}, notAfter, nil
}

// field is a field of a kubeconfig that must not be set.
type field struct {
	name string
	set  bool
	why  string
}

const (
	runsProgram = "it runs a program"
	readsFile   = "it reads a file"
)

func checkCluster(cluster *clientcmdapi.Cluster) error {
	if err := refuseFields("cluster",
		field{"certificate-authority", cluster.CertificateAuthority != "", readsFile},
		field{"proxy-url", cluster.ProxyURL != "", "it sends credentials to another host"},
		field{"insecure-skip-tls-verify", cluster.InsecureSkipTLSVerify, "it trusts any server"},
	); err != nil {
		return err
	}
	server, err := url.Parse(cluster.Server)
	if err != nil || server.Scheme != "https" || server.Host == "" {
		return refuse("cluster.server is not an https URL")
	}
	if server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		return refuse("cluster.server has more than scheme, host and path")
	}
	if ca := cluster.CertificateAuthorityData; len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return refuse("cluster.certificate-authority-data has no certificate")
	}
	return nil
}

// checkUser returns until when the client certificate is valid.
func checkUser(user *clientcmdapi.AuthInfo) (time.Time, error) {
	impersonates := user.Impersonate != "" || user.ImpersonateUID != "" ||
		len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0
	if err := refuseFields("user",
		field{"exec", user.Exec != nil, runsProgram},
		field{"auth-provider", user.AuthProvider != nil, runsProgram},
		field{"tokenFile", user.TokenFile != "", readsFile},
		field{"client-certificate", user.ClientCertificate != "", readsFile},
		field{"client-key", user.ClientKey != "", readsFile},
		field{"as", impersonates, "it acts as somebody else"},
	); err != nil {
		return time.Time{}, err
	}
	hasCertificate := len(user.ClientCertificateData) > 0 || len(user.ClientKeyData) > 0
	if !hasCertificate {
		if user.Token == "" && (user.Username == "" || user.Password == "") {
			return time.Time{}, refuse("user has no credentials")
		}
		return time.Time{}, nil
	}
	pair, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData)
	if err != nil || pair.Leaf == nil {
		return time.Time{}, refuse("user.client-certificate-data and user.client-key-data are no certificate and its key")
	}
	return pair.Leaf.NotAfter, nil
}

func refuseFields(parent string, fields ...field) error {
	for _, f := range fields {
		if f.set {
			return refuse(fmt.Sprintf("%s.%s is set: %s", parent, f.name, f.why))
		}
	}
	return nil
}

func refuse(why string) error {
	return fmt.Errorf("%w: %s", ErrRefused, why)
}
