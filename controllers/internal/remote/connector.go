// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// timeout is how long the answer to one request may take, connection and all.
	timeout = 10 * time.Second

	// pause is how long a cluster that did not answer is taken as unreachable without another try, so that its many
	// requests do not keep the workers from those of others.
	pause = 15 * time.Second

	// kubeconfigKey is the key of the Secret that CAPI's contract gives the kubeconfig.
	kubeconfigKey = "value"
)

// SecretName returns the name of the Secret with the admin kubeconfig of the CAPI Cluster called cluster.
func SecretName(cluster string) string { return cluster + "-kubeconfig" }

// Connector makes connections to clusters. It is safe for use by many goroutines.
type Connector struct {
	// Clock tells whether a certificate has expired.
	Clock clock.PassiveClock

	// WrapTransport, unless nil, sees all requests to clusters.
	WrapTransport func(http.RoundTripper) http.RoundTripper

	reader client.Reader
	scheme *runtime.Scheme
	mapper apimeta.RESTMapper

	mu          sync.Mutex
	connections map[types.NamespacedName]*Connection
}

// NewConnector returns a Connector that reads the Secrets with reader.
func NewConnector(reader client.Reader) *Connector {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(rbacv1.AddToScheme(scheme))
	utilruntime.Must(authenticationv1.AddToScheme(scheme))
	// The few kinds are known: asking each cluster for its kinds would cost requests.
	mapper := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, rbacv1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), apimeta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), apimeta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), apimeta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), apimeta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("Role"), apimeta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), apimeta.RESTScopeNamespace)
	return &Connector{
		Clock: clock.RealClock{}, reader: reader, scheme: scheme, mapper: mapper,
		connections: map[types.NamespacedName]*Connection{},
	}
}

// Connection is a connection to one cluster. It is for one reconciliation: the next one asks for it again.
type Connection struct {
	// Client reads and writes Namespaces, ServiceAccounts and the kinds of RBAC, without a cache.
	Client client.Client

	// Host is the URL of the API server.
	Host string

	// ServerName is the name that the API server's certificate must have, when it is not that of the host.
	ServerName string

	// CAData are the certificates that the API server's certificate is checked with.
	CAData []byte

	version   string
	notAfter  time.Time
	transport *http.Transport
	clock     clock.PassiveClock

	mu     sync.Mutex
	failed time.Time
	err    error
}

// Connect returns a connection to a CAPI Cluster. It sends no request to it: see Probe.
func (c *Connector) Connect(ctx context.Context, cluster types.NamespacedName) (*Connection, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: SecretName(cluster.Name)}
	if err := c.reader.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		c.Forget(cluster)
		return nil, fmt.Errorf("%w: Secret %s does not exist", ErrSecretNotFound, key)
	} else if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	connection, err := c.connection(cluster, secret)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", key, err)
	}
	if end := connection.notAfter; !end.IsZero() && c.Clock.Now().After(end) {
		return nil, fmt.Errorf("%w: the client certificate in Secret %s was valid until %s",
			ErrExpired, key, end.UTC().Format(time.RFC3339))
	}
	return connection, nil
}

// Forget drops the connection to a cluster.
func (c *Connector) Forget(cluster types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replace(cluster, nil)
}

// replace puts another connection, or none, in the place of the one to a cluster.
func (c *Connector) replace(cluster types.NamespacedName, connection *Connection) {
	if old := c.connections[cluster]; old != nil {
		old.transport.CloseIdleConnections()
	}
	if connection == nil {
		delete(c.connections, cluster)
		return
	}
	c.connections[cluster] = connection
}

// connection returns the connection that was made from this very version of the Secret, or makes one.
func (c *Connector) connection(cluster types.NamespacedName, secret *corev1.Secret) (*Connection, error) {
	version := string(secret.UID) + "/" + secret.ResourceVersion
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.connections[cluster]; known != nil && known.version == version {
		return known, nil
	}
	c.replace(cluster, nil)
	if owner := secret.Labels[clusterv1.ClusterNameLabel]; owner != cluster.Name {
		return nil, refuse(fmt.Sprintf("it has no label %s=%s", clusterv1.ClusterNameLabel, cluster.Name))
	}
	raw, ok := secret.Data[kubeconfigKey]
	if !ok {
		return nil, refuse(fmt.Sprintf("it has no key %q", kubeconfigKey))
	}
	config, notAfter, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	connection, err := c.open(config)
	if err != nil {
		return nil, err
	}
	connection.version, connection.notAfter = version, notAfter
	c.replace(cluster, connection)
	return connection, nil
}

// open makes a connection. It has a transport of its own, which can be closed when the credentials change, and speaks
// HTTP/1.1, so that a connection that died is not used again after a request on it timed out.
func (c *Connector) open(config *rest.Config) (*Connection, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, refuse("its certificates cannot be used")
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: timeout,
		IdleConnTimeout:     time.Minute,
	}
	var tripper http.RoundTripper = transport
	if c.WrapTransport != nil {
		tripper = c.WrapTransport(tripper)
	}
	if tripper, err = rest.HTTPWrappersForConfig(config, tripper); err != nil {
		return nil, refuse("its credentials cannot be used")
	}
	config.QPS, config.Burst = 50, 100
	remote, err := client.New(config, client.Options{
		HTTPClient: &http.Client{Transport: tripper, Timeout: timeout, CheckRedirect: stay}, Scheme: c.scheme, Mapper: c.mapper,
	})
	if err != nil {
		return nil, refuse("no client can be made from it")
	}
	return &Connection{
		Client: remote, Host: config.Host, ServerName: config.ServerName, CAData: config.CAData,
		transport: transport, clock: c.Clock,
	}, nil
}

// stay follows no redirection, which would send the credentials elsewhere.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Probe asks the API server for something, and returns why it does not answer. After a failure it does not ask again for
// a few seconds.
func (c *Connection) Probe(ctx context.Context) error {
	c.mu.Lock()
	failed, err := c.failed, c.err
	c.mu.Unlock()
	if err != nil && c.clock.Since(failed) < pause {
		return err
	}
	err = Classify(c.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &corev1.Namespace{}))
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) {
		err = nil // any answer will do
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed, c.err = c.clock.Now(), err
	return err
}
