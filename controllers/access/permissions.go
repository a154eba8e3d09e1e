// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/controller-utils/pkg/clusteraccess"
	"github.com/openmcp-project/controller-utils/pkg/pairs"
	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

const (
	// accountNamespace is the namespace of the ServiceAccounts in the clusters.
	accountNamespace = "accessrequests"

	// accessPurpose is the ManagedPurposeLabel of what is made for AccessRequests.
	accessPurpose = "access"

	// idLength is how much of a digest makes a name: enough that no two requests ever share one.
	idLength = 32

	clusterRoleKind = "ClusterRole"
	roleKind        = "Role"
)

// permission is a role in the cluster and its binding, or a binding alone.
type permission struct {
	// name is that of the binding and, if rules are granted, of the role.
	name string

	// namespace of both; empty for the kinds that have none.
	namespace string

	// rules of the role. Ignored when roleRef is set.
	rules []rbacv1.PolicyRule

	// roleRef is the name of an existing role to bind.
	roleRef string

	// named says that the name is the requester's choice, so that it may be in use.
	named bool

	// createNamespace says that the namespace is created when it does not exist.
	createNamespace bool
}

// key tells a permission from all others.
func (p permission) key() string { return p.namespace + "/" + p.name }

// kind returns the kind of role that is granted.
func (p permission) kind() string {
	if p.namespace == "" {
		return clusterRoleKind
	}
	return roleKind
}

// permissions returns what a request asks for. Its error says what cannot be asked for.
func permissions(id string, token *clustersv1.TokenConfig) ([]permission, error) {
	if token == nil {
		return nil, fmt.Errorf("spec.token is not set")
	}
	var out []permission
	seen := map[string]int{}
	for i, wanted := range token.Permissions {
		p := permission{
			name: wanted.Name, namespace: wanted.Namespace, rules: wanted.Rules,
			named: wanted.Name != "", createNamespace: !wanted.DisableAutomaticNamespaceCreation,
		}
		if !p.named {
			p.name = fmt.Sprintf("openmcp:permission:%s:%d", id, i)
		}
		if first, taken := seen[p.key()]; taken {
			return nil, fmt.Errorf("spec.token.permissions[%d] and [%d] have the same name %q: give each %s its own",
				first, i, wanted.Name, p.kind())
		}
		seen[p.key()] = i
		out = append(out, p)
	}
	for i, ref := range token.RoleRefs {
		switch {
		case ref.Kind == roleKind && ref.Namespace == "":
			return nil, fmt.Errorf("spec.token.roleRefs[%d]: namespace of Role %q is not set", i, ref.Name)
		case ref.Kind == clusterRoleKind && ref.Namespace != "":
			return nil, fmt.Errorf("spec.token.roleRefs[%d]: namespace %q of ClusterRole %q must not be set", i, ref.Namespace, ref.Name)
		}
		out = append(out, permission{
			name: fmt.Sprintf("openmcp:roleref:%s:%d", id, i), namespace: ref.Namespace, roleRef: ref.Name,
		})
	}
	return out, nil
}

// grantor makes, in one cluster, what one request asks for.
type grantor struct {
	client client.Client

	// id is the name of the ServiceAccount. No two requests share one.
	id string

	// instance is the labels of what all requests share.
	instance []clusteraccess.Label

	// labels are those of what belongs to this request alone.
	labels []clusteraccess.Label
}

// newGrantor returns the grantor for a request.
func (r *Reconciler) newGrantor(c client.Client, request *clustersv1.AccessRequest) *grantor {
	instance := map[string]string{
		providerv1.ManagedByLabel:      r.ProviderName,
		providerv1.ManagedPurposeLabel: accessPurpose,
	}
	g := &grantor{
		client: c, id: digest(r.Environment, r.ProviderName, request.Namespace, request.Name)[:idLength],
		instance: pairs.MapToPairs(instance),
	}
	instance[providerv1.AccessRequestNamespaceLabel] = request.Namespace
	instance[providerv1.AccessRequestNameLabel] = nameLabel(request.Name)
	g.labels = pairs.MapToPairs(instance)
	return g
}

// nameLabel returns the AccessRequestNameLabel of the request called name.
func nameLabel(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	return digest(name)[:idLength]
}

// subjects returns whom all permissions are granted to.
func (g *grantor) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: g.id, Namespace: accountNamespace}}
}

// grant makes what is wanted, and removes what is not wanted any more. Nothing is touched when an object in the way
// belongs to somebody else.
func (g *grantor) grant(ctx context.Context, wanted []permission) (*corev1.ServiceAccount, error) {
	for _, p := range wanted {
		if err := g.checkNames(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := g.prune(ctx, g.keeping(wanted)); err != nil {
		return nil, err
	}
	if _, err := clusteraccess.EnsureNamespace(ctx, g.client, accountNamespace, g.own(g.instance)...); err != nil {
		return nil, err
	}
	account, err := clusteraccess.EnsureServiceAccount(ctx, g.client, g.id, accountNamespace, g.own(g.labels)...)
	if err != nil {
		return nil, err
	}
	for _, p := range wanted {
		if err := g.ensure(ctx, p); err != nil {
			return nil, err
		}
	}
	return account, nil
}

// own returns a copy of labels: clusteraccess sorts what it is given.
func (g *grantor) own(labels []clusteraccess.Label) []clusteraccess.Label {
	return slices.Clone(labels)
}

// checkNames returns an error when a name that the requester chose is in use.
func (g *grantor) checkNames(ctx context.Context, p permission) error {
	if !p.named {
		return nil
	}
	objs := []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}}
	if p.namespace != "" {
		objs = []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}}
	}
	for _, obj := range objs {
		if err := g.client.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: p.name}, obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read %T %s: %w", obj, p.key(), err)
		} else if err != nil {
			continue
		}
		if err := clusteraccess.FailIfNotManaged(obj, g.own(g.labels)...); err != nil {
			return err
		}
	}
	return nil
}

// ensure makes one permission.
func (g *grantor) ensure(ctx context.Context, p permission) error {
	var err error
	labels := g.own(g.labels)
	switch {
	case p.namespace == "" && p.roleRef == "":
		_, _, err = clusteraccess.EnsureClusterRoleAndBinding(ctx, g.client, p.name, g.subjects(), p.rules, labels...)
	case p.namespace == "":
		_, err = clusteraccess.EnsureClusterRoleBinding(ctx, g.client, p.name, p.roleRef, g.subjects(), labels...)
	case p.roleRef == "":
		if p.createNamespace {
			// The namespace may be anybody's, and outlives the request: what is in it is not ours to delete.
			if _, err := clusteraccess.EnsureNamespace(ctx, g.client, p.namespace); err != nil {
				return err
			}
		}
		_, _, err = clusteraccess.EnsureRoleAndBinding(ctx, g.client, p.name, p.namespace, g.subjects(), p.rules, labels...)
	default:
		_, err = clusteraccess.EnsureRoleBinding(ctx, g.client, p.name, p.namespace, p.roleRef, g.subjects(), labels...)
	}
	return err
}

// kept says whether an object in the cluster is still wanted.
type kept func(obj client.Object) bool

// keeping returns what keeps the objects of the wanted permissions.
func (g *grantor) keeping(wanted []permission) kept {
	roles, bindings := map[string]bool{}, map[string]bool{}
	for _, p := range wanted {
		bindings[p.key()] = true
		roles[p.key()] = p.roleRef == ""
	}
	return func(obj client.Object) bool {
		key := obj.GetNamespace() + "/" + obj.GetName()
		switch obj.(type) {
		case *rbacv1.ClusterRole, *rbacv1.Role:
			return roles[key]
		case *corev1.ServiceAccount:
			return obj.GetName() == g.id && obj.GetNamespace() == accountNamespace
		default:
			return bindings[key]
		}
	}
}
