// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openmcp-project/controller-utils/pkg/pairs"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/remote"
)

// revokeGrace is how long a request that is being deleted waits for an admin kubeconfig that is missing: the control plane
// provider makes a new one when it was deleted.
const revokeGrace = 15 * time.Minute

// grantedKinds are the kinds that are made in a cluster for a request, in the order in which they are deleted: bindings
// first, so that nothing is granted for longer than it must.
func grantedKinds() []client.ObjectList {
	return []client.ObjectList{
		&rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.RoleList{},
		&corev1.ServiceAccountList{},
	}
}

// prune deletes what was made for the request and is not kept. A nil keep keeps nothing.
func (g *grantor) prune(ctx context.Context, keep kept) error {
	for _, list := range grantedKinds() {
		if err := g.client.List(ctx, list, client.MatchingLabels(pairs.PairsToMap(g.labels))); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
		items, err := apimeta.ExtractList(list)
		if err != nil {
			return err
		}
		for _, item := range items {
			obj, ok := item.(client.Object)
			if !ok || (keep != nil && keep(obj)) {
				continue
			}
			uid := obj.GetUID()
			if err := g.client.Delete(ctx, obj, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
			}
		}
	}
	return nil
}

// revokePermissions removes all that was made for the request: the Secret, and what is in the cluster if there still is
// one.
func revokePermissions(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	if err := s.deleteSecret(ctx); err != nil {
		return pipeline.Outcome{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, err)
	}
	gone, err := s.isGone(ctx)
	if err != nil {
		return pipeline.Outcome{}, err
	}
	if gone {
		return pipeline.Done("the cluster is gone or being deleted: there is nothing to take back"), nil
	}
	connection, err := s.Connector.Connect(ctx, s.target.capi)
	if errors.Is(err, remote.ErrSecretNotFound) {
		left := s.graceLeft()
		if left <= 0 {
			return pipeline.Done("the admin kubeconfig has not come back: what is left in the cluster cannot be taken back"), nil
		}
		return pipeline.Wait(providerv1.ReasonClusterNotReady, err.Error(), left), nil
	}
	if err != nil {
		return s.unreachable(err)
	}
	if err := connection.Probe(ctx); err != nil {
		return s.unreachable(err)
	}
	if err := s.newGrantor(connection.Client, s.request).prune(ctx, nil); err != nil {
		return s.explain(err)
	}
	return pipeline.Done("all permissions are taken back"), nil
}

// graceLeft returns how much is left of revokeGrace.
func (s *scope) graceLeft() time.Duration {
	since := s.request.DeletionTimestamp
	if since == nil {
		return revokeGrace
	}
	return since.Add(revokeGrace).Sub(s.Clock.Now())
}

// isGone says whether the cluster is gone or going, with all that is in it.
func (s *scope) isGone(ctx context.Context) (bool, error) {
	var err error
	if s.target, err = s.locate(ctx, s.request); err != nil {
		return false, err
	}
	t := s.target
	if !t.found() || t.cluster.DeletionTimestamp != nil || t.capi.Name == "" {
		return true, nil
	}
	live := &clusterv1.Cluster{}
	if err := s.Client.Get(ctx, t.capi, live); apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return true, nil // without the kind there is no object either
	} else if err != nil {
		return false, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("read CAPI Cluster %s: %w", t.capi, err))
	}
	return live.DeletionTimestamp != nil, nil
}

// denyOIDC denies a request for OIDC access, after taking back what it was granted when it asked for a token.
func denyOIDC(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	if controllerutil.ContainsFinalizer(s.request, providerv1.AccessRequestFinalizer) {
		if outcome, err := revokePermissions(ctx, s); err != nil || !outcome.IsDone() {
			return outcome, err
		}
	}
	s.granted.forget(s.key())
	s.request.Status.SecretRef = nil
	s.denied = true
	return pipeline.Report(providerv1.ReasonNotSupported,
		"spec.oidc: clusters of this profile grant no access by OIDC; ask for spec.token instead"), nil
}

// denyKubeconfig says that a request that is denied gets no kubeconfig.
func denyKubeconfig(context.Context, *scope) (pipeline.Outcome, error) {
	return pipeline.Report(providerv1.ReasonNotSupported, "the request is denied"), nil
}
