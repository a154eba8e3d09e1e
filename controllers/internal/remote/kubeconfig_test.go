// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// secretToken stands for credentials that must not be in an error.
const secretToken = "s3cr3t-t0ken"

// certificate returns a certificate that is valid until notAfter, and its key.
func certificate(t testing.TB, notAfter time.Time) (cert, key []byte) {
	t.Helper()
	g := NewWithT(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admin"},
		NotBefore: time.Unix(0, 0), NotAfter: notAfter, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	g.Expect(err).NotTo(HaveOccurred())
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	g.Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// kubeconfig returns a kubeconfig that is accepted, after changing it.
func kubeconfig(t testing.TB, change func(*clientcmdapi.Config)) []byte {
	t.Helper()
	ca, _ := certificate(t, time.Now().Add(time.Hour))
	config := clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: "https://example.org:6443", CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: secretToken}},
	}
	if change != nil {
		change(&config)
	}
	raw, err := clientcmd.Write(config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return raw
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t, time.Now().Add(time.Hour))
	user := func(change func(*clientcmdapi.AuthInfo)) func(*clientcmdapi.Config) {
		return func(c *clientcmdapi.Config) { change(c.AuthInfos["u"]) }
	}
	cluster := func(change func(*clientcmdapi.Cluster)) func(*clientcmdapi.Config) {
		return func(c *clientcmdapi.Config) { change(c.Clusters["c"]) }
	}
	for name, test := range map[string]struct {
		change func(*clientcmdapi.Config)
		want   string
	}{
		"a program": {user(func(u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "aws", APIVersion: "client.authentication.k8s.io/v1"}
		}), "user.exec is set"},
		"an auth provider": {user(func(u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "gcp"}
		}), "user.auth-provider is set"},
		"a token file":          {user(func(u *clientcmdapi.AuthInfo) { u.TokenFile = "/etc/passwd" }), "user.tokenFile is set"},
		"a client certificate":  {user(func(u *clientcmdapi.AuthInfo) { u.ClientCertificate = "/x" }), "user.client-certificate is set"},
		"a client key":          {user(func(u *clientcmdapi.AuthInfo) { u.ClientKey = "/x" }), "user.client-key is set"},
		"impersonation":         {user(func(u *clientcmdapi.AuthInfo) { u.Impersonate = "root" }), "user.as is set"},
		"no credentials":        {user(func(u *clientcmdapi.AuthInfo) { u.Token = "" }), "user has no credentials"},
		"a certificate, no key": {user(func(u *clientcmdapi.AuthInfo) { u.ClientCertificateData = cert }), "no certificate and its key"},
		"a key, no certificate": {user(func(u *clientcmdapi.AuthInfo) { u.ClientKeyData = key }), "no certificate and its key"},
		"a CA file": {cluster(func(c *clientcmdapi.Cluster) {
			c.CertificateAuthority = "/x"
		}), "cluster.certificate-authority is set"},
		"a proxy": {cluster(func(c *clientcmdapi.Cluster) {
			c.ProxyURL = "http://elsewhere"
		}), "cluster.proxy-url is set"},
		"no TLS verification": {cluster(func(c *clientcmdapi.Cluster) {
			c.InsecureSkipTLSVerify = true
		}), "cluster.insecure-skip-tls-verify is set"},
		"plain HTTP": {cluster(func(c *clientcmdapi.Cluster) {
			c.Server = "http://example.org"
		}), "cluster.server is not an https URL"},
		"no server": {cluster(func(c *clientcmdapi.Cluster) {
			c.Server = ""
		}), "cluster.server is not an https URL"},
		"a password in the URL": {cluster(func(c *clientcmdapi.Cluster) {
			c.Server = "https://a:" + secretToken + "@b"
		}), "more than scheme, host and path"},
		"a garbage CA": {cluster(func(c *clientcmdapi.Cluster) {
			c.CertificateAuthorityData = []byte("x")
		}), "has no certificate"},
		"no current context": {func(c *clientcmdapi.Config) { c.CurrentContext = "" }, "current-context names no context"},
		"an unknown cluster": {func(c *clientcmdapi.Config) { c.Contexts["c"].Cluster = "x" }, "names no cluster"},
		"an unknown user":    {func(c *clientcmdapi.Config) { c.Contexts["c"].AuthInfo = "x" }, "names no user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			config, _, err := Parse(kubeconfig(t, test.change))
			g.Expect(err).To(MatchError(ErrRefused))
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring(secretToken))
			g.Expect(config).To(BeNil())
		})
	}
}

func TestParseRefusesGarbageWithoutQuotingIt(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", secretToken, "token: " + secretToken, "{", "users: " + secretToken,
		"apiVersion: v1\nkind: Config\nusers: [{name: [" + secretToken + "]}]",
	} {
		g := NewWithT(t)
		_, _, err := Parse([]byte(raw))
		g.Expect(err).To(MatchError(ErrRefused), raw)
		g.Expect(err.Error()).NotTo(ContainSubstring(secretToken))
	}
}

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	cert, key := certificate(t, end)

	config, notAfter, err := Parse(kubeconfig(t, nil))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Host).To(Equal("https://example.org:6443"))
	g.Expect(config.BearerToken).To(Equal(secretToken))
	g.Expect(notAfter).To(BeZero())

	config, notAfter, err = Parse(kubeconfig(t, func(c *clientcmdapi.Config) {
		c.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
		c.Clusters["c"].TLSServerName = "kubernetes"
	}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.CertData).To(Equal(cert))
	g.Expect(config.ServerName).To(Equal("kubernetes"))
	g.Expect(notAfter).To(BeTemporally("==", end))
}

// FuzzParse checks that no kubeconfig makes Parse panic, leak a token, or return something that leads out of it.
func FuzzParse(f *testing.F) {
	f.Add(kubeconfig(f, nil))
	f.Add(kubeconfig(f, func(c *clientcmdapi.Config) { c.AuthInfos["u"].Exec = &clientcmdapi.ExecConfig{Command: "sh"} }))
	f.Add(kubeconfig(f, func(c *clientcmdapi.Config) { c.Clusters["c"].Server = "https://u:p@[::1]:6443/k8s?x#y" }))
	f.Add([]byte("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {}}]\n"))
	f.Add([]byte("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c}]\nclusters: [null]\nusers: [{}]\n"))
	f.Add([]byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, _, err := Parse(raw)
		if err != nil {
			if config != nil || strings.Contains(err.Error(), secretToken) || len(err.Error()) > 200 {
				t.Fatalf("refused with %q", err)
			}
			return
		}
		if !strings.HasPrefix(strings.ToLower(config.Host), "https://") || config.Insecure || config.ExecProvider != nil ||
			config.AuthProvider != nil || config.BearerTokenFile != "" || config.CAFile != "" || config.CertFile != "" ||
			config.KeyFile != "" || config.Proxy != nil {
			t.Fatalf("accepted what leads elsewhere")
		}
	})
}
