// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	vklog "github.com/virtual-kubelet/virtual-kubelet/log"
	vkslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
)

// shutdownGrace is all that pods get when the whole node stops.
const shutdownGrace = 5 * time.Second

// options are the flags of the command.
type options struct {
	name, kubeconfig, table, dir, socket string
	port                                 int
}

func main() {
	var o options
	flag.StringVar(&o.name, "node-name", "local", "name of the node")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster, with the rights of a node and to ask for tokens")
	flag.StringVar(&o.table, "images", "", "YAML file that says which binary stands for which image")
	flag.StringVar(&o.dir, "dir", "", "folder for pods and logs")
	flag.StringVar(&o.socket, "proxy-socket", "", "unix socket of the API server's egress proxy")
	flag.IntVar(&o.port, "port", 0, "loopback port on which logs are served to the API server")
	flag.Parse()
	vklog.L = vkslog.FromSlog(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
		Level: slog.LevelError, ReplaceAttr: withoutStack,
	})))
	if err := run(o); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// withoutStack logs errors without the stack traces that virtual-kubelet's carry.
func withoutStack(_ []string, attr slog.Attr) slog.Attr {
	if err, ok := attr.Value.Any().(error); ok {
		attr.Value = slog.StringValue(err.Error())
	}
	return attr
}

// run serves the node and the proxy until it is told to stop, and leaves no process behind.
func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	// The pods' kubeconfigs carry the CA itself, not a path.
	if err := rest.LoadTLSFiles(config); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(o.dir, "logs"), 0o755); err != nil {
		return err
	}
	a := &agent{
		client: client, config: config, dir: o.dir, table: o.table, ctx: ctx, logf: log.Printf,
		ports: &ports{taken: map[int]bool{}}, pods: map[string]*pod{},
	}
	n, err := newNode(o, a)
	if err != nil {
		return err
	}
	defer a.stopAll(shutdownGrace)
	failed := make(chan error, 2)
	go func() { failed <- serveProxy(ctx, o.socket, a.resolve) }()
	go func() { failed <- n.Run(ctx) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// newNode wires virtual-kubelet to the agent; the agent resolves environments itself, so that a missing Secret shows in
// the pod's status.
func newNode(o options, a *agent) (*nodeutil.Node, error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.ParseIP(nodeIP)}, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	return nodeutil.NewNode(o.name,
		func(c nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
			a.content = content{secrets: c.Secrets, configMaps: c.ConfigMaps}
			a.lister = c.Pods
			describe(c.Node, o)
			return a, nil, nil
		},
		nodeutil.WithClient(a.client),
		func(c *nodeutil.NodeConfig) error {
			c.SkipDownwardAPIResolution = true
			c.NumWorkers = 8
			c.HTTPListenAddr = net.JoinHostPort(nodeIP, strconv.Itoa(o.port))
			c.Handler = mux
			c.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
			return nil
		},
		nodeutil.AttachProviderRoutes(mux),
	)
}

// describe fills the Node as the scheduler and charts with node affinities want it.
func describe(n *corev1.Node, o options) {
	n.Labels = map[string]string{
		corev1.LabelHostname:   o.name,
		corev1.LabelOSStable:   runtime.GOOS,
		corev1.LabelArchStable: runtime.GOARCH,
	}
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("1000"),
	}
	n.Status.Allocatable = n.Status.Capacity
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: nodeIP},
		{Type: corev1.NodeHostName, Address: o.name},
	}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(o.port)
	n.Status.NodeInfo = corev1.NodeSystemInfo{
		OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
		KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "process://1", OSImage: fmt.Sprintf("%s processes", runtime.GOOS),
	}
	for i := range n.Status.Conditions {
		n.Status.Conditions[i].LastHeartbeatTime = metav1.Now()
		n.Status.Conditions[i].LastTransitionTime = metav1.Now()
		if n.Status.Conditions[i].Type != corev1.NodeReady {
			n.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
}
