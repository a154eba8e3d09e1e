// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/cluster-provider-capi/api/install"
	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// TestInitNamesTheChartThatCannotBeFetched has Flux itself say why.
func TestInitNamesTheChartThatCannotBeFetched(t *testing.T) {
	g := NewWithT(t)
	c, err := client.New(target.Config, client.Options{Scheme: install.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	defaults := gitops.DefaultDefaults("v0.1.0")
	defaults.Operator.Chart = &providerv1.Chart{
		OCI: &sourcev1.OCIRepositorySpec{URL: "oci://127.0.0.1:1/nowhere", Insecure: true}, Version: "0.29.0",
	}
	id := controllers.Identity{ProviderName: "unreachable", Environment: "e2e", Namespace: "default", Defaults: defaults}
	t.Cleanup(func() {
		ours := []client.DeleteAllOfOption{client.InNamespace("default"), client.MatchingLabels{providerv1.ManagedByLabel: "unreachable"}}
		g.Expect(c.DeleteAllOf(context.Background(), &helmv2.HelmRelease{}, ours...)).To(Succeed())
		g.Expect(c.DeleteAllOf(context.Background(), &sourcev1.OCIRepository{}, ours...)).To(Succeed())
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = controllers.Prepare(ctx, c, id, func(message string) { t.Log(message) })
	g.Expect(err).To(MatchError(And(
		ContainSubstring(providerv1.ReasonSourceNotReady), ContainSubstring("OCIRepository default/unreachable-operator"),
		ContainSubstring("connection refused"))))
}
