// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
)

// KeyAlgorithm of all keys.
const KeyAlgorithm = bootstrapv1.EncryptionAlgorithmECDSAP256

// Kubeconfig makes one of an administrator, with a new certificate and key inside.
func Kubeconfig(cluster string, spec Spec) ([]byte, error) {
	cert, key, err := authority(spec.CA)
	if err != nil {
		return nil, err
	}
	config, err := kubeconfig.New(cluster, Endpoint(spec), cert, key, kubeconfig.KeyEncryptionAlgorithm(KeyAlgorithm))
	if err != nil {
		return nil, fmt.Errorf("make a kubeconfig: %w", err)
	}
	return clientcmd.Write(*config)
}

// writeFiles writes all that the processes read, and makes a new client for the API server.
func (c *cluster) writeFiles(spec Spec) error {
	ca, key, err := authority(spec.CA)
	if err != nil {
		return err
	}
	serverCert, serverKey, err := sign(ca, key, serverCertificate(spec.Host))
	if err != nil {
		return fmt.Errorf("make the certificate of the API server: %w", err)
	}
	admin, err := Kubeconfig(c.name, spec)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		caFile: spec.CA.Cert, serverCertFile: serverCert, serverKeyFile: serverKey,
		publicTokenFile: spec.ServiceAccount.Cert, privateTokenFile: spec.ServiceAccount.Key,
		authenticationFile: []byte(spec.AuthenticationConfig), managerFile: admin,
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write the files of the cluster: %w", err)
		}
	}
	c.admin, err = httpClient(admin)
	return err
}

// httpClient returns a client of its own, as rest's cache of transports would keep those of all certificates.
func httpClient(raw []byte) (*http.Client, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, err
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true}}, nil
}

func serverCertificate(host string) *certs.Config {
	names := certs.AltNames{
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
	}
	if ip := net.ParseIP(host); ip != nil {
		names.IPs = append(names.IPs, ip)
	} else {
		names.DNSNames = append(names.DNSNames, host)
	}
	return &certs.Config{
		CommonName: "kube-apiserver", AltNames: names, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// sign makes a certificate and its key, both as PEM.
func sign(ca *x509.Certificate, caKey crypto.Signer, config *certs.Config) ([]byte, []byte, error) {
	key, err := certs.NewSigner(KeyAlgorithm)
	if err != nil {
		return nil, nil, err
	}
	cert, err := config.NewSignedCert(key, ca, caKey)
	if err != nil {
		return nil, nil, err
	}
	raw, err := certs.EncodePrivateKeyPEMFromSigner(key)
	return certs.EncodeCertPEM(cert), raw, err
}

func authority(pair *certs.KeyPair) (*x509.Certificate, crypto.Signer, error) {
	cert, err := certs.DecodeCertPEM(pair.Cert)
	if err != nil {
		return nil, nil, fmt.Errorf("read the CA's certificate: %w", err)
	}
	key, err := certs.DecodePrivateKeyPEM(pair.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("read the CA's key: %w", err)
	}
	return cert, key, nil
}
