// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/remote"
)

// retryRemote is how soon a cluster that does not answer, or misses something, is tried again: it cannot be watched.
const retryRemote = 30 * time.Second

// target is the cluster that a request is for.
type target struct {
	// cluster is the Cluster; nil unless it exists and is ours.
	cluster *clustersv1.Cluster

	// capi names the CAPI Cluster; empty while there is none.
	capi types.NamespacedName

	// missing says why there is no cluster.
	missing string
}

// found says whether the cluster exists and is ours.
func (t target) found() bool { return t.cluster != nil }

// locate returns the cluster that a request is for.
func (r *Reconciler) locate(ctx context.Context, request *clustersv1.AccessRequest) (target, error) {
	ref := request.Spec.ClusterRef
	if ref == nil {
		return target{missing: "spec.clusterRef is not set yet: openmcp-operator sets it when the ClusterRequest is granted"}, nil
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	cluster := &clustersv1.Cluster{}
	if err := r.Client.Get(ctx, key, cluster); apierrors.IsNotFound(err) {
		return target{missing: fmt.Sprintf("Cluster %s of spec.clusterRef does not exist", key)}, nil
	} else if err != nil {
		return target{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("read Cluster %s: %w", key, err))
	}
	ours, err := r.ours(ctx, cluster)
	if err != nil {
		return target{}, err
	}
	if !ours {
		return target{missing: fmt.Sprintf("Cluster %s belongs to another provider, by its ClusterProfile %s", key, cluster.Spec.Profile)}, nil
	}
	t := target{cluster: cluster}
	var status providerv1.ClusterStatus
	if raw := cluster.Status.ProviderStatus; raw == nil || json.Unmarshal(raw.Raw, &status) != nil || status.ClusterName == "" {
		return t, nil
	}
	// The CAPI Cluster lives beside the Cluster: no status leads elsewhere.
	t.capi = types.NamespacedName{Namespace: cluster.Namespace, Name: status.ClusterName}
	return t, nil
}

// ours says whether a Cluster belongs to this instance: by its ClusterProfile or, when that is gone, by what this instance
// has put on it.
func (r *Reconciler) ours(ctx context.Context, cluster *clustersv1.Cluster) (bool, error) {
	profile := &clustersv1.ClusterProfile{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: cluster.Spec.Profile}, profile)
	if apierrors.IsNotFound(err) {
		return cluster.Labels[clustersv1.ProviderLabel] == r.ProviderName &&
			controllerutil.ContainsFinalizer(cluster, providerv1.ClusterFinalizer), nil
	}
	if err != nil {
		return false, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("read ClusterProfile %s: %w", cluster.Spec.Profile, err))
	}
	return profile.Spec.ProviderRef.Name == r.ProviderName, nil
}

// findCluster finds the cluster, and waits until it has an endpoint.
func findCluster(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	var err error
	if s.target, err = s.locate(ctx, s.request); err != nil {
		return pipeline.Outcome{}, err
	}
	if !s.target.found() {
		return pipeline.Wait(providerv1.ReasonClusterNotFound, s.target.missing, 0), nil
	}
	cluster := s.target.cluster
	key := client.ObjectKeyFromObject(cluster)
	switch {
	case cluster.DeletionTimestamp != nil:
		return pipeline.Wait(providerv1.ReasonDeleting, fmt.Sprintf("Cluster %s is being deleted", key), s.untilExpiry()), nil
	case s.target.capi.Name == "" || len(cluster.Status.Endpoints) == 0:
		return pipeline.Wait(providerv1.ReasonClusterNotReady,
			fmt.Sprintf("Cluster %s has no endpoint yet: its own conditions say what it waits for", key), s.untilExpiry()), nil
	}
	return pipeline.Done(fmt.Sprintf("Cluster %s is CAPI Cluster %s", key, s.target.capi)), nil
}

// connect connects to the cluster, and asks it for something unless nothing is to be done there.
func connect(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	connection, err := s.Connector.Connect(ctx, s.target.capi)
	if err != nil {
		return s.unreachable(err)
	}
	s.connection = connection
	s.remembered = s.isRemembered()
	if !s.remembered {
		if err := connection.Probe(ctx); err != nil {
			return s.unreachable(err)
		}
	}
	return pipeline.Done("the API server answers to the admin kubeconfig"), nil
}

// unreachable returns what it means that the cluster cannot be used. The Secret of the admin kubeconfig is watched.
func (s *scope) unreachable(err error) (pipeline.Outcome, error) {
	for _, known := range []struct {
		err    error
		reason string
		after  time.Duration
	}{
		{remote.ErrSecretNotFound, providerv1.ReasonClusterNotReady, s.untilExpiry()},
		{remote.ErrRefused, providerv1.ReasonKubeconfigRefused, s.untilExpiry()},
		{remote.ErrExpired, providerv1.ReasonAdminKubeconfigExpired, s.untilExpiry()},
		{remote.ErrUnauthorized, providerv1.ReasonUnauthorized, retryRemote},
		{remote.ErrUnreachable, providerv1.ReasonClusterUnreachable, retryRemote},
	} {
		if errors.Is(err, known.err) {
			return pipeline.Wait(known.reason, err.Error(), known.after), nil
		}
	}
	return pipeline.Outcome{}, err
}

// isRemembered says whether the request was granted as it is, in the cluster as it is, and nothing has happened to the
// Secret since.
func (s *scope) isRemembered() bool {
	g := s.granted.get(s.key())
	return !g.renew && g.hash == s.grantHash() && s.secret != nil && g.data == dataHash(s.secret.Data) && s.isUsable()
}

// grantHash returns the hash of all that a grant depends on.
func (s *scope) grantHash() string {
	return digest(
		s.request.UID, s.request.Spec.Token, s.target.cluster.UID, s.target.capi,
		s.connection.Host, s.connection.ServerName, s.connection.CAData,
	)
}

// digest returns the hash of values, in hexadecimal digits.
func digest(values ...any) string {
	raw, err := json.Marshal(values)
	if err != nil {
		raw = fmt.Appendf(nil, "%#v", values) // nothing that is hashed here cannot be encoded
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
