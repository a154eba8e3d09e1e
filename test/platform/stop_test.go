// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package platform_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// started is what the owner of a platform prints when it runs, before the path of the kubeconfig.
const started = "STARTED"

// TestPlatformDiesWithItsOwner runs a second platform beside the first, and kills the process that runs it.
func TestPlatformDiesWithItsOwner(t *testing.T) {
	g := soon(t)
	dir := t.TempDir()
	owner, kubeconfig := startOwner(t, dir)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	c, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: sleepImage,
		}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() ([]string, error) { return processesIn(dir) }).Should(ContainElement(ContainSubstring("sleep 600")))

	g.Expect(owner.Process.Kill()).To(Succeed())
	g.Eventually(func() ([]string, error) { return processesIn(dir) }).Should(BeEmpty())
	g.Expect(processesIn(underTest.Dir())).NotTo(BeEmpty(), "the other platform goes on")
}

// startOwner starts a process that runs a platform in a folder, and returns the platform's kubeconfig.
func startOwner(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	g := NewWithT(t)
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	owner := exec.Command(self, dir)
	owner.Env = append(os.Environ(), roleVariable+"="+roleOwner)
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(owner.Start()).To(Succeed())
	t.Cleanup(func() {
		_ = owner.Process.Kill()
		_ = owner.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if kubeconfig, ok := strings.CutPrefix(lines.Text(), started+" "); ok {
			return owner, kubeconfig
		}
		t.Log(lines.Text())
	}
	t.Fatal("the second platform did not start")
	return nil, ""
}

// processesIn lists the processes that work in a folder, by their command lines; the folder may be gone.
func processesIn(dir string) ([]string, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, folder := range folders {
		// A process can be gone by now.
		cwd, err := os.Readlink(filepath.Join(folder, "cwd"))
		if err != nil || !strings.HasPrefix(cwd, dir+"/") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil {
			continue
		}
		found = append(found, strings.ReplaceAll(string(raw), "\x00", " "))
	}
	return found, nil
}
