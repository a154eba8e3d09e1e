// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/controller-utils/pkg/controller"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// Names of the components that are not CAPI providers.
const (
	CertManager = "cert-manager"
	Operator    = "operator"
	ProviderSet = "provider-set"
	Core        = "core"
)

// coreProviderName is the only name that the CAPI Operator accepts for a core provider.
const coreProviderName = "cluster-api"

// ComponentKey returns the name of the component that a CAPI provider is, which is also its ComponentLabel:
// "core" or, for example, "infrastructure-aws".
func ComponentKey(kind providerv1.ProviderType, name string) string {
	if kind == providerv1.CoreType {
		return Core
	}
	return strings.ToLower(string(kind)) + "-" + name
}

// ProviderKey returns the name and namespace of the CAPI Operator's object for a provider.
func ProviderKey(p providerv1.Provider) client.ObjectKey {
	key := client.ObjectKey{Name: p.Name, Namespace: p.Namespace}
	if key.Namespace == "" {
		key.Namespace = fmt.Sprintf("%s-%s-system", p.Name, strings.ToLower(string(p.Type)))
	}
	return key
}

// coreAsProvider returns the core provider in the shape of all others.
func coreAsProvider(core providerv1.CoreProvider) providerv1.Provider {
	p := providerv1.Provider{
		Type:            providerv1.CoreType,
		Name:            coreProviderName,
		Version:         core.Version,
		Namespace:       core.Namespace,
		ProviderOptions: core.ProviderOptions,
	}
	if p.Namespace == "" {
		p.Namespace = "capi-system"
	}
	return p
}

// NewProviderObject returns an empty object of the CAPI Operator's kind for a type of provider, or nil for an unknown
// type.
func NewProviderObject(kind providerv1.ProviderType) operatorv1.GenericProvider {
	switch kind {
	case providerv1.CoreType:
		return &operatorv1.CoreProvider{}
	case providerv1.InfrastructureType:
		return &operatorv1.InfrastructureProvider{}
	case providerv1.BootstrapType:
		return &operatorv1.BootstrapProvider{}
	case providerv1.ControlPlaneType:
		return &operatorv1.ControlPlaneProvider{}
	case providerv1.AddonType:
		return &operatorv1.AddonProvider{}
	case providerv1.IPAMType:
		return &operatorv1.IPAMProvider{}
	case providerv1.RuntimeExtensionType:
		return &operatorv1.RuntimeExtensionProvider{}
	default:
		return nil
	}
}

// ProviderTypeOf returns the type of provider that an object of the CAPI Operator is for; empty for an unknown kind.
func ProviderTypeOf(obj operatorv1.GenericProvider) providerv1.ProviderType {
	for _, kind := range ProviderTypes() {
		if reflect.TypeOf(NewProviderObject(kind)) == reflect.TypeOf(obj) {
			return kind
		}
	}
	return ""
}

// ProviderTypes are all types of providers that can be installed, core first.
func ProviderTypes() []providerv1.ProviderType {
	return []providerv1.ProviderType{
		providerv1.CoreType, providerv1.InfrastructureType, providerv1.BootstrapType, providerv1.ControlPlaneType,
		providerv1.AddonType, providerv1.IPAMType, providerv1.RuntimeExtensionType,
	}
}

// objectKind returns the kind of the CAPI Operator's object for a type of provider.
func objectKind(kind providerv1.ProviderType) string {
	if kind == providerv1.IPAMType {
		return "IPAMProvider"
	}
	return strings.ToUpper(string(kind[:1])) + string(kind[1:]) + "Provider"
}

// name returns the name of the Flux objects of a component. Flux puts it into a label of all that it applies, so one that
// is longer than a label value may be is shortened, and ends with a hash.
func (in Input) name(component string) string {
	return controller.ShortenToXCharactersUnsafe(in.Instance+"-"+component, validation.LabelValueMaxLength)
}

// labels returns the labels of the objects of a component.
func (in Input) labels(component string) map[string]string {
	labels := map[string]string{
		providerv1.ManagedByLabel:      in.Instance,
		providerv1.ManagedPurposeLabel: component,
		providerv1.ComponentLabel:      component,
	}
	if in.Config != "" {
		labels[providerv1.ProviderConfigLabel] = in.Config
	}
	return labels
}

// meta returns the metadata of a Flux object of a component.
func (in Input) meta(component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: in.name(component), Namespace: in.Namespace, Labels: in.labels(component)}
}
