// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package platform_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/cluster-provider-capi/test/platform"
)

// The test binary plays other programs when this variable names one.
const (
	roleVariable = "PLATFORM_TEST_ROLE"
	rolePod      = "pod"
	roleOwner    = "owner"
)

// sleepImage is an image for pods that do nothing.
const sleepImage = "example.org/sleep:v1"

var sleep = platform.Image{Path: "/bin/sleep", DefaultArgs: []string{"600"}}

// play does what a role does, and returns an exit code.
func play(role string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var err error
	switch role {
	case rolePod:
		err = playPod(ctx)
	case roleOwner:
		err = playOwner(ctx)
	default:
		err = fmt.Errorf("no such role: %s", role)
	}
	if err != nil {
		return failed(err)
	}
	return 0
}

// playPod does what the pod's ServiceAccount may do, and fails unless the rest is refused.
func playPod(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	namespace := os.Getenv("NAMESPACE")
	told, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	if _, err := c.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		return fmt.Errorf("listing Secrets must be forbidden: %w", err)
	}
	_, err = c.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "from-the-pod"}, Data: map[string]string{"told": string(told)},
	}, metav1.CreateOptions{})
	return err
}

// playOwner runs a platform until it is killed.
func playOwner(ctx context.Context) error {
	p, err := platform.Start(ctx, platform.Options{
		Dir: os.Args[1], Out: os.Stdout, Images: map[string]platform.Image{sleepImage: sleep},
	})
	if err != nil {
		return err
	}
	fmt.Println(started, p.Kubeconfig())
	<-p.Done()
	return p.Err()
}

func TestPodHasTheRightsOfItsServiceAccount(t *testing.T) {
	g := soon(t)
	apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: rights}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: writer, namespace: rights}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: writer, namespace: rights}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: writer, namespace: rights}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: writer}
subjects: [{kind: ServiceAccount, name: writer, namespace: rights}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: writer, namespace: rights}
spec:
  backoffLimit: 0
  template:
    spec:
      serviceAccountName: writer
      restartPolicy: Never
      containers:
      - name: main
        image: %s
        args: [/etc/told/text]
        env: [{name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]
        volumeMounts: [{name: told, mountPath: /etc/told}]
      volumes: [{name: told, secret: {secretName: told}}]
---
apiVersion: v1
kind: Secret
metadata: {name: told, namespace: rights}
stringData: {text: what the Secret says}
`, testImage)
	g.Eventually(func(g Gomega) {
		all, err := pods(t.Context(), "rights")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all).To(HaveLen(1))
		g.Expect(all[0].Status.Phase).To(Equal(corev1.PodSucceeded), "%+v", all[0].Status.ContainerStatuses)
	}).Should(Succeed())
	written := &corev1.ConfigMap{}
	g.Expect(kubeClient.Get(t.Context(), client.ObjectKey{Namespace: "rights", Name: "from-the-pod"}, written)).To(Succeed())
	g.Expect(written.Data).To(HaveKeyWithValue("told", "what the Secret says"))
}

func TestUnknownImageIsNotPulled(t *testing.T) {
	const image = "example.org/unknown:v9"
	g := soon(t)
	apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: unknown}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: unknown, namespace: unknown}
spec:
  selector: {matchLabels: {app: unknown}}
  template:
    metadata: {labels: {app: unknown}}
    spec: {containers: [{name: main, image: %q}]}
`, image)
	g.Eventually(func(g Gomega) {
		all, err := pods(t.Context(), "unknown")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all).To(HaveLen(1))
		g.Expect(all[0].Status.ContainerStatuses).To(HaveLen(1))
		waiting := all[0].Status.ContainerStatuses[0].State.Waiting
		g.Expect(waiting).NotTo(BeNil())
		g.Expect(waiting.Reason).To(Equal("ErrImagePull"))
		g.Expect(waiting.Message).To(ContainSubstring(image))
	}).Should(Succeed())

	g.Expect(underTest.SetImage(image, sleep)).To(Succeed())
	g.Eventually(func(g Gomega) {
		all, err := pods(t.Context(), "unknown")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all[0].Status.Phase).To(Equal(corev1.PodRunning))
	}).Should(Succeed(), "an image that is added later is found")
}
