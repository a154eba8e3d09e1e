// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"net"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

func TestDefaultsAreWhatTheProductTakes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = listener.Close() }()
	p := &Platform{registryListener: listener}

	var defaults gitops.Defaults
	g.Expect(yaml.UnmarshalStrict([]byte(p.Defaults()), &defaults)).To(Succeed())
	g.Expect(defaults.Operator.Chart.OCI.URL).To(Equal("oci://" + p.Registry() + "/charts/cluster-api-operator"))
	g.Expect(defaults.Operator.Chart.OCI.Insecure).To(BeTrue())
	g.Expect(defaults.Core.Fetch.OCI).To(Equal("http://" + p.Registry() + "/capi/core:" + defaults.Core.Version))
	g.Expect(defaults.ProviderSource.OCI.URL).To(HavePrefix("oci://" + p.Registry()))
}

func TestReplaceNamesATextThatIsNotThere(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	files := Files{"values.yaml": []byte("tag: dev\n")}
	g.Expect(replace(files, "values.yaml", map[string]string{"tag: dev": "tag: v1"})).To(Succeed())
	g.Expect(string(files["values.yaml"])).To(Equal("tag: v1\n"))
	g.Expect(replace(files, "values.yaml", map[string]string{"image:": ""})).
		To(MatchError(ContainSubstring(`values.yaml does not contain "image:"`)))
}

func TestTarballDependsOnTheFilesAlone(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	one, err := tarball(Files{"a": []byte("1"), "b/c": []byte("2")})
	g.Expect(err).NotTo(HaveOccurred())
	two, err := tarball(Files{"b/c": []byte("2"), "a": []byte("1")})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(two).To(Equal(one))
}
