// SPDX-License-Identifier: Apache-2.0

package access

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/testenv"
)

func TestGrantsWhatIsAskedForAndNothingElse(t *testing.T) {
	f := newFixture(t)
	f.ready()
	target := f.namespace + "-target"
	request := f.grant(f.request("app", &clustersv1.TokenConfig{Permissions: []clustersv1.PermissionsRequest{
		{Rules: mayRead("configmaps")},
		{Namespace: target, Rules: mayRead("secrets")},
	}}))

	for _, condition := range []string{
		providerv1.ClusterFoundCondition, providerv1.ClusterReachableCondition, providerv1.PermissionsGrantedCondition,
		providerv1.KubeconfigIssuedCondition,
	} {
		f.Expect(request).To(testenv.HaveCondition(condition, metav1.ConditionTrue, providerv1.ReasonSucceeded))
	}
	secret := f.secret(request)
	f.Expect(secret.Name).To(Equal("app.kubeconfig"))
	f.Expect(secret.Type).To(Equal(corev1.SecretTypeOpaque))
	f.Expect(metav1.IsControlledBy(secret, request)).To(BeTrue())
	f.Expect(secret.Data).To(HaveLen(6))
	f.Expect(string(secret.Data[clustersv1.SecretKeyHost])).To(HavePrefix("https://"))
	f.Expect(secret.Data[clustersv1.SecretKeyCA]).To(ContainSubstring("BEGIN CERTIFICATE"))

	c := f.consumer(request)
	f.eventuallyMay(c, true, &corev1.ConfigMapList{})
	f.eventuallyMay(c, true, &corev1.SecretList{}, client.InNamespace(target))
	f.Expect(f.may(c, &corev1.SecretList{})).To(BeFalse())
	f.Expect(f.may(c, &corev1.PodList{})).To(BeFalse())
	f.Expect(c.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: target}})).NotTo(Succeed())
}

func TestTakesBackWhatIsNoLongerAskedFor(t *testing.T) {
	f := newFixture(t)
	f.ready()
	request := f.grant(f.request("app", &clustersv1.TokenConfig{
		Permissions: []clustersv1.PermissionsRequest{
			{Name: f.namespace + ":configmaps", Rules: mayRead("configmaps")}, {Rules: mayRead("secrets")},
		},
		RoleRefs: []commonapi.RoleRef{{Kind: "ClusterRole", Name: "system:kube-scheduler"}},
	}))
	c := f.consumer(request)
	f.eventuallyMay(c, true, &corev1.SecretList{})
	f.eventuallyMay(c, true, &corev1.PodList{})
	token := f.secret(request).Data[clustersv1.SecretKeyToken]

	f.change(request, func(r *clustersv1.AccessRequest) {
		r.Spec.Token.Permissions, r.Spec.Token.RoleRefs = r.Spec.Token.Permissions[:1], nil
	})
	request = f.grant(request)
	f.eventuallyMay(c, false, &corev1.SecretList{})
	f.eventuallyMay(c, false, &corev1.PodList{})
	f.Expect(f.may(c, &corev1.ConfigMapList{})).To(BeTrue())
	f.Expect(f.secret(request).Data[clustersv1.SecretKeyToken]).To(Equal(token), "the token is still good")
	f.Expect(f.remains(request)).To(Equal(3), "ServiceAccount, ClusterRole, ClusterRoleBinding")
}

func TestBindsExistingRoles(t *testing.T) {
	f := newFixture(t)
	f.ready()
	f.Expect(env.Client.Create(f.ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: f.namespace}, Rules: mayRead("configmaps"),
	})).To(Succeed())
	request := f.grant(f.request("app", &clustersv1.TokenConfig{RoleRefs: []commonapi.RoleRef{
		{Kind: "Role", Name: "theirs", Namespace: f.namespace}, {Kind: "ClusterRole", Name: "system:node-problem-detector"},
	}}))
	c := f.consumer(request)
	f.eventuallyMay(c, true, &corev1.ConfigMapList{}, client.InNamespace(f.namespace))
	f.eventuallyMay(c, false, &corev1.ConfigMapList{})
	f.Eventually(func() error { return c.Get(f.ctx, client.ObjectKey{Name: "x"}, &corev1.Node{}) }).
		Should(MatchError(ContainSubstring("not found")))
}

func TestRefusesToTouchForeignObjects(t *testing.T) {
	f := newFixture(t)
	f.ready()
	foreign := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + ":taken"}, Rules: mayRead("pods")}
	f.Expect(env.Client.Create(f.ctx, foreign)).To(Succeed())
	before := foreign.ResourceVersion

	request, _ := f.reconcile(f.request("app", &clustersv1.TokenConfig{Permissions: []clustersv1.PermissionsRequest{
		{Rules: mayRead("configmaps")}, {Name: foreign.Name, Rules: mayRead("secrets")},
	}}))
	f.Expect(request.Status.Phase).To(Equal(clustersv1.REQUEST_PENDING))
	f.Expect(request).To(testenv.HaveCondition(
		providerv1.PermissionsGrantedCondition, metav1.ConditionFalse, providerv1.ReasonResourceNotManaged))
	f.Expect(request.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("ClusterRole "+foreign.Name))))
	f.Expect(f.remains(request)).To(BeZero(), "nothing is created half")
	f.Expect(env.Client.Get(f.ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
	f.Expect(foreign.ResourceVersion).To(Equal(before))

	f.Expect(env.Client.Delete(f.ctx, foreign)).To(Succeed())
	f.grant(request)
}

func TestRefusesAForeignSecret(t *testing.T) {
	f := newFixture(t)
	f.ready()
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "app.kubeconfig", Namespace: f.namespace}}
	f.Expect(env.Client.Create(f.ctx, foreign)).To(Succeed())
	request, _ := f.reconcile(f.request("app", &clustersv1.TokenConfig{}))
	f.Expect(request).To(testenv.HaveCondition(
		providerv1.PermissionsGrantedCondition, metav1.ConditionFalse, providerv1.ReasonResourceNotManaged))
	f.Expect(f.secret(request).Data).To(BeEmpty())
	f.Expect(f.remains(request)).To(BeZero())
}

func TestTwoRequestsOfOneNameShareNothing(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	f.ready()
	other.ready()
	one := f.grant(f.request("app", &clustersv1.TokenConfig{Permissions: []clustersv1.PermissionsRequest{{Rules: mayRead("configmaps")}}}))
	two := other.grant(other.request("app", &clustersv1.TokenConfig{
		Permissions: []clustersv1.PermissionsRequest{{Rules: mayRead("secrets")}},
	}))
	f.eventuallyMay(f.consumer(one), true, &corev1.ConfigMapList{})
	f.eventuallyMay(f.consumer(two), true, &corev1.SecretList{})
	f.Expect(f.may(f.consumer(one), &corev1.SecretList{})).To(BeFalse())
	f.Expect(f.may(f.consumer(two), &corev1.ConfigMapList{})).To(BeFalse())

	taken, _ := other.reconcile(other.request("thief", &clustersv1.TokenConfig{
		Permissions: []clustersv1.PermissionsRequest{{Name: other.namespace + ":mine", Rules: mayRead("pods")}},
	}))
	f.Expect(taken.Status.Phase).To(Equal(clustersv1.REQUEST_GRANTED))
	second, _ := f.reconcile(f.request("second", &clustersv1.TokenConfig{
		Permissions: []clustersv1.PermissionsRequest{{Name: other.namespace + ":mine", Rules: mayRead("secrets")}},
	}))
	f.Expect(second).To(testenv.HaveCondition(
		providerv1.PermissionsGrantedCondition, metav1.ConditionFalse, providerv1.ReasonResourceNotManaged))
}

func TestRefusesWhatCannotBeAskedFor(t *testing.T) {
	f := newFixture(t)
	f.ready()
	for name, test := range map[string]struct {
		token  clustersv1.TokenConfig
		reason string
		want   string
	}{
		"one name twice": {clustersv1.TokenConfig{Permissions: []clustersv1.PermissionsRequest{
			{Name: "x", Rules: mayRead("pods")}, {Name: "x", Rules: mayRead("secrets")},
		}}, providerv1.ReasonInvalidSpec, "spec.token.permissions[0] and [1]"},
		"a role without namespace": {clustersv1.TokenConfig{RoleRefs: []commonapi.RoleRef{{Kind: "Role", Name: "x"}}},
			providerv1.ReasonInvalidSpec, "spec.token.roleRefs[0]: namespace"},
		"rules without verbs": {clustersv1.TokenConfig{Permissions: []clustersv1.PermissionsRequest{
			{Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{}}}},
		}}, providerv1.ReasonInvalidSpec, "verbs"},
		"a namespace that must not be created": {clustersv1.TokenConfig{Permissions: []clustersv1.PermissionsRequest{
			{Namespace: "missing", DisableAutomaticNamespaceCreation: true, Rules: mayRead("pods")},
		}}, providerv1.ReasonRejected, `"missing" not found`},
	} {
		request := f.request(strings.ReplaceAll(name, " ", "-"), &test.token)
		_, _ = f.reconciler.Reconcile(f.ctx, requestFor(request))
		f.Expect(env.Client.Get(f.ctx, client.ObjectKeyFromObject(request), request)).To(Succeed())
		f.Expect(request).To(testenv.HaveCondition(providerv1.PermissionsGrantedCondition, metav1.ConditionFalse, test.reason), name)
		f.Expect(request.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring(test.want))), name)
		f.Expect(request.Status.SecretRef).To(BeNil())
		f.Expect(env.Client.Delete(f.ctx, request)).To(Succeed())
		gone, _ := f.reconcile(request)
		f.Expect(gone).To(BeNil())
	}
}

func TestDeniesOIDC(t *testing.T) {
	f := newFixture(t)
	f.ready()
	request := f.grant(f.request("app", &clustersv1.TokenConfig{Permissions: []clustersv1.PermissionsRequest{{Rules: mayRead("pods")}}}))
	f.change(request, func(r *clustersv1.AccessRequest) {
		r.Spec.Token = nil
		r.Spec.OIDC = &clustersv1.OIDCConfig{OIDCProviderConfig: commonapi.OIDCProviderConfig{
			Name: "idp", Issuer: "https://idp.example.org", ClientID: "x", RoleBindings: []commonapi.RoleBindings{},
			UsernameClaim: "sub", GroupsClaim: "groups",
			UsernamePrefix: ptr.To("idp:"), GroupsPrefix: ptr.To("idp:"),
		}}
	})
	request, _ = f.reconcile(request)
	f.Expect(request.Status.Phase).To(Equal(clustersv1.REQUEST_DENIED))
	f.Expect(request.Status.SecretRef).To(BeNil())
	f.Expect(request.Finalizers).To(BeEmpty())
	f.Expect(request).To(testenv.HaveCondition(providerv1.ReadyCondition, metav1.ConditionFalse, providerv1.ReasonNotSupported))
	f.Expect(f.remains(request)).To(BeZero())

	f.writes.Store(0)
	request, _ = f.reconcile(f.handOver(request))
	f.Expect(request.Status.Phase).To(Equal(clustersv1.REQUEST_DENIED), "again, after openmcp-operator has asked again")
	f.Expect(f.writes.Load()).To(BeEquivalentTo(1))
}
