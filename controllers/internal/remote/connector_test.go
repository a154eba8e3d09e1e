// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd/api"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var name = types.NamespacedName{Namespace: "ns", Name: "one"}

func secretWith(kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "one-kubeconfig", UID: "uid", Labels: map[string]string{clusterv1.ClusterNameLabel: "one"},
		},
		Data: map[string][]byte{"value": kubeconfig},
	}
}

// server answers all requests with a status code, and counts them.
func server(t *testing.T, code int, body string) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var count atomic.Int32
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		count.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s, &count
}

func kubeconfigOf(t *testing.T, s *httptest.Server, token string) []byte {
	t.Helper()
	return kubeconfig(t, func(c *api.Config) {
		c.Clusters["c"].Server = s.URL
		c.Clusters["c"].CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		c.AuthInfos["u"].Token = token
	})
}

func TestConnectExplainsWhatIsMissing(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, err := NewConnector(fake.NewFakeClient()).Connect(t.Context(), name)
	g.Expect(err).To(MatchError(ErrSecretNotFound))
	g.Expect(err).To(MatchError(ContainSubstring("Secret ns/one-kubeconfig does not exist")))

	foreign := secretWith(kubeconfig(t, nil))
	foreign.Labels = nil
	_, err = NewConnector(fake.NewFakeClient(foreign)).Connect(t.Context(), name)
	g.Expect(err).To(MatchError(ErrRefused))
	g.Expect(err).To(MatchError(ContainSubstring("no label")))

	empty := secretWith(nil)
	empty.Data = nil
	_, err = NewConnector(fake.NewFakeClient(empty)).Connect(t.Context(), name)
	g.Expect(err).To(MatchError(ContainSubstring(`no key "value"`)))
}

func TestConnectNamesTheEndOfAnExpiredCertificate(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	end := time.Now().Add(time.Hour)
	cert, key := certificate(t, end)
	connector := NewConnector(fake.NewFakeClient(secretWith(kubeconfig(t, func(c *api.Config) {
		c.AuthInfos["u"] = &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	}))))
	clock := testingclock.NewFakePassiveClock(time.Now())
	connector.Clock = clock
	_, err := connector.Connect(t.Context(), name)
	g.Expect(err).NotTo(HaveOccurred())
	clock.SetTime(end.Add(time.Second))
	_, err = connector.Connect(t.Context(), name)
	g.Expect(err).To(MatchError(ErrExpired))
	g.Expect(err).To(MatchError(ContainSubstring(end.UTC().Format(time.RFC3339))))
}

func TestConnectionEndsWithTheVersionOfItsSecret(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s, _ := server(t, http.StatusOK, `{"apiVersion":"v1","kind":"Namespace"}`)
	c := fake.NewFakeClient(secretWith(kubeconfigOf(t, s, "one")))
	var tokens []string
	connector := NewConnector(c)
	connector.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			tokens = append(tokens, r.Header.Get("Authorization"))
			return next.RoundTrip(r)
		})
	}
	first, err := connector.Connect(t.Context(), name)
	g.Expect(err).NotTo(HaveOccurred())
	again, err := connector.Connect(t.Context(), name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(BeIdenticalTo(first))
	g.Expect(first.Probe(t.Context())).To(Succeed())

	secret := &corev1.Secret{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "one-kubeconfig"}, secret)).To(Succeed())
	secret.Data["value"] = kubeconfigOf(t, s, "two")
	g.Expect(c.Update(t.Context(), secret)).To(Succeed())
	second, err := connector.Connect(t.Context(), name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second.Probe(t.Context())).To(Succeed())
	g.Expect(tokens).To(Equal([]string{"Bearer one", "Bearer two"}))

	g.Expect(c.Delete(t.Context(), secret)).To(Succeed())
	_, err = connector.Connect(t.Context(), name)
	g.Expect(err).To(MatchError(ErrSecretNotFound))
	g.Expect(connector.connections).To(BeEmpty())
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func TestProbeClassifies(t *testing.T) {
	t.Parallel()
	status := func(code string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","code":` + code + `}`
	}
	for label, test := range map[string]struct {
		code int
		body string
		want error
	}{
		"an answer":              {http.StatusOK, `{"apiVersion":"v1","kind":"Namespace"}`, nil},
		"a refusal is an answer": {http.StatusForbidden, status("403"), nil},
		"not found is an answer": {http.StatusNotFound, status("404"), nil},
		"401":                    {http.StatusUnauthorized, status("401"), ErrUnauthorized},
		"503":                    {http.StatusServiceUnavailable, status("503"), ErrUnreachable},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			s, _ := server(t, test.code, test.body)
			connection, err := NewConnector(fake.NewFakeClient(secretWith(kubeconfigOf(t, s, secretToken)))).Connect(t.Context(), name)
			g.Expect(err).NotTo(HaveOccurred())
			err = connection.Probe(t.Context())
			if test.want == nil {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(test.want))
			g.Expect(err.Error()).NotTo(ContainSubstring(secretToken))
		})
	}
}

func TestProbeOfADeadServer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s, _ := server(t, http.StatusOK, "{}")
	raw := kubeconfigOf(t, s, secretToken)
	s.Close()
	connector := NewConnector(fake.NewFakeClient(secretWith(raw)))
	clock := testingclock.NewFakePassiveClock(time.Now())
	connector.Clock = clock
	var calls int
	connector.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			calls++
			return next.RoundTrip(r)
		})
	}
	connection, err := connector.Connect(t.Context(), name)
	g.Expect(err).NotTo(HaveOccurred())
	first := connection.Probe(t.Context())
	g.Expect(first).To(MatchError(ErrUnreachable))
	g.Expect(first.Error()).To(Equal("cluster unreachable: dial: connect: connection refused"))
	g.Expect(connection.Probe(t.Context())).To(Equal(first))
	g.Expect(calls).To(Equal(1), "a dead cluster is left alone for a while")
	clock.SetTime(clock.Now().Add(pause))
	g.Expect(connection.Probe(t.Context())).To(MatchError(ErrUnreachable))
	g.Expect(calls).To(Equal(2))
}

func TestProbeOfTheWrongServer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s, count := server(t, http.StatusOK, "{}")
	raw := kubeconfig(t, func(c *api.Config) { c.Clusters["c"].Server = s.URL })
	connection, err := NewConnector(fake.NewFakeClient(secretWith(raw))).Connect(t.Context(), name)
	g.Expect(err).NotTo(HaveOccurred())
	err = connection.Probe(t.Context())
	g.Expect(err).To(MatchError(ErrUnreachable))
	g.Expect(err).To(MatchError(ContainSubstring("x509")))
	g.Expect(count.Load()).To(BeZero(), "no credentials are sent")
}

func TestRedirectionsAreNotFollowed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	other, count := server(t, http.StatusOK, "{}")
	s := httptest.NewTLSServer(http.RedirectHandler(other.URL, http.StatusFound))
	t.Cleanup(s.Close)
	connection, err := NewConnector(fake.NewFakeClient(secretWith(kubeconfigOf(t, s, secretToken)))).Connect(t.Context(), name)
	g.Expect(err).NotTo(HaveOccurred())
	_ = connection.Probe(t.Context())
	g.Expect(count.Load()).To(BeZero())
}

func TestClassifyNamesATimeoutWithoutPorts(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	c := &http.Client{Timeout: 50 * time.Millisecond}
	_, err = c.Get("http://" + listener.Addr().String()) //nolint:bodyclose // there is no answer
	err = Classify(err)
	g.Expect(err).To(MatchError(ErrUnreachable))
	g.Expect(strings.Contains(err.Error(), "127.0.0.1")).To(BeFalse())
}
