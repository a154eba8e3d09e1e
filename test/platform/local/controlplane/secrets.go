// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openmcp-project/cluster-provider-capi/test/platform/local/api/controlplane/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/test/platform/local/workload"
)

// renewBefore is how long before its end a client certificate, which is valid for a year, is replaced.
const renewBefore = 180 * 24 * time.Hour

// spec says what the processes are to be. The keys are those of the Secrets, as in every cluster of Cluster API; a user
// can bring them, and they are made otherwise, unless generate is false.
func (r *Reconciler) spec(
	ctx context.Context, cluster *clusterv1.Cluster, plane *controlplanev1.LocalControlPlane, generate bool,
) (workload.Spec, error) {
	ca := &secret.Certificate{Purpose: secret.ClusterCA, KeyEncryptionAlgorithm: workload.KeyAlgorithm}
	tokens := &secret.Certificate{Purpose: secret.ServiceAccount, KeyEncryptionAlgorithm: workload.KeyAlgorithm}
	all, key := secret.Certificates{ca, tokens}, client.ObjectKeyFromObject(cluster)
	var err error
	if generate {
		err = all.LookupOrGenerate(ctx, r.Client, key, *metav1.NewControllerRef(plane, kind))
	} else {
		err = all.Lookup(ctx, r.Client, key)
	}
	if err != nil {
		return workload.Spec{}, fmt.Errorf("get the keys: %w", err)
	}
	if err := all.EnsureAllExist(); err != nil {
		return workload.Spec{}, fmt.Errorf("get the keys: %w", err)
	}
	return workload.Spec{
		UID:                  plane.UID,
		Host:                 cluster.Spec.ControlPlaneEndpoint.Host,
		Port:                 cluster.Spec.ControlPlaneEndpoint.Port,
		Version:              plane.Spec.Version,
		CA:                   ca.KeyPair,
		ServiceAccount:       tokens.KeyPair,
		AuthenticationConfig: plane.Spec.AuthenticationConfig,
		Verbose:              plane.Spec.Logging == controlplanev1.LoggingVerbose,
	}, nil
}

// ensureKubeconfig makes the Secret or renews what is inside. A Secret that is not the control plane's is the user's, and
// left alone.
func (r *Reconciler) ensureKubeconfig(
	ctx context.Context, cluster *clusterv1.Cluster, plane *controlplanev1.LocalControlPlane, spec workload.Spec,
) error {
	current, err := secret.Get(ctx, r.Client, client.ObjectKeyFromObject(cluster), secret.Kubeconfig)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	missing := apierrors.IsNotFound(err)
	if !missing && (!metav1.IsControlledBy(current, plane) || upToDate(current, cluster, spec)) {
		return nil
	}
	raw, err := workload.Kubeconfig(cluster.Name, spec)
	if err != nil {
		return err
	}
	if missing {
		owner := *metav1.NewControllerRef(plane, kind)
		return r.Client.Create(ctx, kubeconfig.GenerateSecretWithOwner(client.ObjectKeyFromObject(cluster), raw, owner))
	}
	current.Data = map[string][]byte{secret.KubeconfigDataName: raw}
	return r.Client.Update(ctx, current)
}

// upToDate is true when a kubeconfig is that of the cluster and can be used for long enough.
func upToDate(current *corev1.Secret, cluster *clusterv1.Cluster, spec workload.Spec) bool {
	config, err := clientcmd.Load(current.Data[secret.KubeconfigDataName])
	if err != nil {
		return false
	}
	entry := config.Clusters[cluster.Name]
	if entry == nil || entry.Server != workload.Endpoint(spec) || !bytes.Equal(entry.CertificateAuthorityData, spec.CA.Cert) {
		return false
	}
	renew, err := kubeconfig.NeedsClientCertRotation(current, renewBefore)
	return err == nil && !renew
}

// removeSecrets deletes the control plane's Secrets at once, as the keys are of no use without the data.
func (r *Reconciler) removeSecrets(ctx context.Context, plane *controlplanev1.LocalControlPlane) error {
	name := plane.Labels[clusterv1.ClusterNameLabel]
	if name == "" {
		// Cluster API has not adopted it, so there are none.
		return nil
	}
	for _, purpose := range []secret.Purpose{secret.Kubeconfig, secret.ClusterCA, secret.ServiceAccount} {
		key := client.ObjectKey{Namespace: plane.Namespace, Name: secret.Name(name, purpose)}
		found := &corev1.Secret{}
		if err := r.Client.Get(ctx, key, found); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get Secret %s: %w", key, err)
		}
		if !metav1.IsControlledBy(found, plane) {
			continue
		}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, found)); err != nil {
			return fmt.Errorf("delete Secret %s: %w", key, err)
		}
	}
	return nil
}
