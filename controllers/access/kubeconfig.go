// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openmcp-project/controller-utils/pkg/clusteraccess"
	"github.com/openmcp-project/controller-utils/pkg/controller"
	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/remote"
)

const (
	secretSuffix = ".kubeconfig"

	// accountAnnotation holds, on the Secret, the UID of the ServiceAccount that the token is for: a token does not work
	// for another one of the same name.
	accountAnnotation = providerv1.GroupName + "/serviceaccount-uid"

	// kubeconfigUser is the name of the user in the kubeconfigs.
	kubeconfigUser = "accessrequest"

	// renewalRatio is the part of its lifetime after which a token is renewed, and renewalSpread how much earlier that
	// may be, so that tokens that were issued together are not renewed together.
	renewalRatio, renewalSpread = 0.8, 0.05
)

// secretName returns the name of the Secret with the kubeconfig of the request called name.
func secretName(name string) string {
	return controller.ShortenToXCharactersUnsafe(name, controller.K8sMaxNameLength-len(secretSuffix)) + secretSuffix
}

// readSecret returns the Secret that has the name of the one of a request; nil when there is none.
func (r *Reconciler) readSecret(ctx context.Context, request *clustersv1.AccessRequest) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: request.Namespace, Name: secretName(request.Name)}
	if err := r.Client.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	return secret, nil
}

// ownsSecret says whether the Secret belongs to the request.
func (s *scope) ownsSecret() bool {
	return s.secret != nil && metav1.IsControlledBy(s.secret, s.request)
}

// grantPermissions makes the permissions in the cluster what the request asks for.
func grantPermissions(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	done := pipeline.Done("the ServiceAccount has the requested permissions")
	if s.remembered {
		return done, nil
	}
	if s.secret != nil && !s.ownsSecret() {
		return pipeline.Wait(providerv1.ReasonResourceNotManaged, fmt.Sprintf(
			"Secret %s has the name of the one of this request and belongs to somebody else: delete it, or give the request another name",
			client.ObjectKeyFromObject(s.secret)), retryRemote), nil
	}
	g := s.newGrantor(s.connection.Client, s.request)
	wanted, err := permissions(g.id, s.request.Spec.Token)
	if err != nil {
		return pipeline.Outcome{}, pipeline.Invalid(providerv1.ReasonInvalidSpec, err)
	}
	if s.account, err = g.grant(ctx, wanted); err != nil {
		return s.explain(err)
	}
	return done, nil
}

// explain returns what an error of a request to the cluster means.
func (s *scope) explain(err error) (pipeline.Outcome, error) {
	var (
		foreign *clusteraccess.ResourceNotManagedError
		again   *clusteraccess.WaitingForRecreationError
	)
	switch err = remote.Classify(err); {
	case errors.As(err, &foreign):
		obj := foreign.Obj
		return pipeline.Wait(providerv1.ReasonResourceNotManaged, fmt.Sprintf(
			"%s in the cluster belongs to somebody else: ask for another name, or remove it", describe(obj)), retryRemote), nil
	case errors.As(err, &again):
		return pipeline.Wait(providerv1.ReasonProgressing, fmt.Sprintf(
			"%s in the cluster is being made anew", describe(again.New)), retryRemote), nil
	case errors.Is(err, remote.ErrUnreachable), errors.Is(err, remote.ErrUnauthorized):
		return s.unreachable(err)
	case apierrors.IsInvalid(err):
		return pipeline.Outcome{}, pipeline.Invalid(providerv1.ReasonInvalidSpec, fmt.Errorf("refused by the cluster: %w", err))
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		// A namespace that is missing or going, or an admin who may not do it.
		return pipeline.Wait(providerv1.ReasonRejected, fmt.Sprintf("refused by the cluster: %v", err), retryRemote), nil
	default:
		return pipeline.Outcome{}, err
	}
}

// describe names an object of a cluster by kind and name.
func describe(obj client.Object) string {
	kind := fmt.Sprintf("%T", obj)
	kind = kind[strings.LastIndex(kind, ".")+1:]
	if obj.GetNamespace() == "" {
		return kind + " " + obj.GetName()
	}
	return kind + " " + client.ObjectKeyFromObject(obj).String()
}

// issueKubeconfig makes the Secret with the kubeconfig, and sees to it that it comes back in time for a new one.
func issueKubeconfig(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	if s.mustIssue() {
		token, err := s.requestToken(ctx)
		if err != nil {
			return s.explain(err)
		}
		if !token.ExpirationTimestamp.After(token.CreationTimestamp) {
			return pipeline.Wait(providerv1.ReasonRejected,
				"the cluster issued a token that has expired already: its clock and ours are far apart", retryRemote), nil
		}
		if err := s.writeSecret(ctx, token); err != nil {
			return pipeline.Outcome{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, err)
		}
	}
	_, expires, _ := lifetime(s.secret)
	s.granted.set(s.key(), grant{hash: s.grantHash(), data: dataHash(s.secret.Data), expires: expires})
	s.request.Status.SecretRef = &commonapi.LocalObjectReference{Name: s.secret.Name}
	return pipeline.Done(fmt.Sprintf("Secret %s has a kubeconfig that works", s.secret.Name)).
		Again(max(s.renewal().Sub(s.Clock.Now()), time.Second)), nil
}

// mustIssue says whether the token in the Secret will not do.
func (s *scope) mustIssue() bool {
	if s.remembered {
		return false
	}
	g := s.granted.get(s.key())
	changed := g.data != "" && s.secret != nil && g.data != dataHash(s.secret.Data)
	return g.renew || changed || !s.isUsable() || s.secret.Annotations[accountAnnotation] != string(s.account.UID)
}

// requestToken asks the cluster for a token.
func (s *scope) requestToken(ctx context.Context) (*clusteraccess.ServiceAccountToken, error) {
	wanted := s.TokenLifetime
	if wanted == 0 {
		wanted = DefaultTokenLifetime
	}
	token, err := clusteraccess.CreateTokenForServiceAccount(ctx, s.connection.Client, s.account, &wanted)
	if err != nil {
		return nil, err
	}
	token.CreationTimestamp = s.Clock.Now()
	return token, nil
}

// writeSecret writes the Secret with a token.
func (s *scope) writeSecret(ctx context.Context, token *clusteraccess.ServiceAccountToken) error {
	secret, err := s.desiredSecret(token)
	if err != nil {
		return err
	}
	if _, err := s.Applier.Apply(ctx, secret); err != nil {
		return err
	}
	s.secret = secret
	return nil
}

// desiredSecret returns the Secret for a token.
func (s *scope) desiredSecret(token *clusteraccess.ServiceAccountToken) (*corev1.Secret, error) {
	c := s.connection
	kubeconfig, err := kubeconfigFor(c, token.Token)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: secretName(s.request.Name), Namespace: s.request.Namespace,
			Labels: map[string]string{
				providerv1.ManagedByLabel: s.ProviderName, providerv1.ManagedPurposeLabel: accessPurpose,
			},
			Annotations: map[string]string{accountAnnotation: string(s.account.UID)},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			clustersv1.SecretKeyKubeconfig:          kubeconfig,
			clustersv1.SecretKeyCreationTimestamp:   unix(token.CreationTimestamp),
			clustersv1.SecretKeyExpirationTimestamp: unix(token.ExpirationTimestamp),
			clustersv1.SecretKeyHost:                []byte(c.Host),
			clustersv1.SecretKeyCA:                  bytes.Clone(c.CAData),
			clustersv1.SecretKeyToken:               []byte(token.Token),
		},
	}
	return secret, controllerutil.SetControllerReference(s.request, secret, s.Client.Scheme())
}

// kubeconfigFor returns the kubeconfig for a token. It is the same for the same token.
func kubeconfigFor(c *remote.Connection, token string) ([]byte, error) {
	raw, err := clusteraccess.CreateTokenKubeconfig(kubeconfigUser, c.Host, c.CAData, token)
	if err != nil || c.ServerName == "" {
		return raw, err
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		cluster.TLSServerName = c.ServerName
	}
	return clientcmd.Write(*config)
}

// isUsable says whether the Secret is whole, is for the cluster as it is, and its token is not due for renewal.
func (s *scope) isUsable() bool {
	if !s.ownsSecret() || s.secret.Labels[providerv1.ManagedByLabel] != s.ProviderName {
		return false
	}
	data := s.secret.Data
	kubeconfig, err := kubeconfigFor(s.connection, string(data[clustersv1.SecretKeyToken]))
	return err == nil && len(data[clustersv1.SecretKeyToken]) > 0 &&
		bytes.Equal(data[clustersv1.SecretKeyKubeconfig], kubeconfig) &&
		string(data[clustersv1.SecretKeyHost]) == s.connection.Host &&
		bytes.Equal(data[clustersv1.SecretKeyCA], s.connection.CAData) &&
		s.Clock.Now().Before(s.renewal())
}

// renewal returns when the token is to be renewed: in the past when that is not known.
func (s *scope) renewal() time.Time {
	created, expires, ok := lifetime(s.secret)
	if !ok {
		return time.Time{}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.request.UID))
	early := renewalSpread * float64(h.Sum32()) / math.MaxUint32
	return clusteraccess.ComputeTokenRenewalTimeWithRatio(created, expires, renewalRatio-early)
}

// untilExpiry returns how long the token in the Secret still works; zero when it does not.
func (s *scope) untilExpiry() time.Duration {
	_, expires, _ := lifetime(s.secret)
	return max(expires.Sub(s.Clock.Now()), 0)
}

// withdraw deletes a Secret that does not work any more, so that nobody uses it: its token has expired and could not be
// renewed, or its cluster is gone.
func (s *scope) withdraw(ctx context.Context) error {
	if s.request.Status.SecretRef == nil && !s.ownsSecret() {
		return nil
	}
	if s.untilExpiry() > 0 && s.target.missing == "" {
		return nil
	}
	s.granted.forget(s.key())
	return s.deleteSecret(ctx)
}

// deleteSecret deletes the Secret if it is ours.
func (s *scope) deleteSecret(ctx context.Context) error {
	s.request.Status.SecretRef = nil
	if !s.ownsSecret() {
		return nil
	}
	if err := s.Applier.Delete(ctx, s.secret); err != nil {
		return err
	}
	s.secret = nil
	return nil
}

// lifetime returns from when until when the token in a Secret is valid, and whether that is known.
func lifetime(secret *corev1.Secret) (created, expires time.Time, ok bool) {
	if secret == nil {
		return created, expires, false
	}
	from, err1 := strconv.ParseInt(string(secret.Data[clustersv1.SecretKeyCreationTimestamp]), 10, 64)
	until, err2 := strconv.ParseInt(string(secret.Data[clustersv1.SecretKeyExpirationTimestamp]), 10, 64)
	if err1 != nil || err2 != nil || until <= from {
		return created, expires, false
	}
	return time.Unix(from, 0), time.Unix(until, 0), true
}

func unix(t time.Time) []byte { return []byte(strconv.FormatInt(t.Unix(), 10)) }

// dataHash returns the hash of a Secret's data.
func dataHash(data map[string][]byte) string { return digest(data) }
