// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// Part is one component of a bundle and the objects that install it.
type Part struct {
	// Component is the unique name of the component, which is also its ComponentLabel.
	Component string

	// Name, Type and Version are what status.components says of it.
	Name, Type, Version string

	// External says that somebody else installs the component: it has no objects.
	External bool

	// Provider is the CAPI provider that the part installs, with all defaults; nil for other components.
	Provider *providerv1.Provider

	// Source is the Flux source that Installer reads from; nil when the platform owner brings one.
	Source client.Object

	// Installer is the HelmRelease or Kustomization that installs the component; nil when it is External.
	Installer client.Object

	// Objects are the objects to apply, in order.
	Objects []client.Object
}

// Bundle is all that a ProviderConfig installs, in the order in which it is installed.
type Bundle struct {
	// CertManager is cert-manager.
	CertManager Part

	// Operator is the CAPI Operator.
	Operator Part

	// ProviderSet is the source of the provider set. Its Installer is the source itself.
	ProviderSet Part

	// Core is CAPI's core provider.
	Core Part

	// Providers are all other providers, in the order of the spec.
	Providers []Part

	// Sets are the provider sets of the platform owner's own, in the order of the spec.
	Sets []Part
}

// Build returns what a ProviderConfig installs. Its errors name the field of the spec that is wrong.
func Build(in Input) (Bundle, error) {
	in.Spec = in.Defaults.Complete(in.Spec)
	if err := in.validate(); err != nil {
		return Bundle{}, err
	}
	var (
		b    Bundle
		errs []error
	)
	keep := func(part Part, err error) Part {
		errs = append(errs, err)
		return part
	}
	b.CertManager = keep(in.certManagerPart())
	b.Operator = keep(in.operatorPart())
	b.ProviderSet = in.providerSetPart()
	b.Core = keep(in.providerPart(coreAsProvider(in.Spec.Core)))
	for _, p := range in.Spec.Providers {
		b.Providers = append(b.Providers, keep(in.providerPart(p)))
	}
	for _, set := range in.Spec.ProviderSets {
		b.Sets = append(b.Sets, in.setPart(set))
	}
	for _, part := range []Part{b.CertManager, b.Operator, b.ProviderSet, b.Core} {
		in.stamp(part)
	}
	return b, errors.Join(errs...)
}

// stamp puts the release on the objects of a part.
func (in Input) stamp(part Part) {
	for _, obj := range part.Objects {
		if in.Release != "" {
			obj.SetAnnotations(map[string]string{providerv1.ReleaseAnnotation: in.Release})
		}
	}
}

// Parts returns all parts, in the order in which they are installed.
func (b Bundle) Parts() []Part {
	return slices.Concat([]Part{b.CertManager, b.Operator, b.ProviderSet, b.Core}, b.Providers, b.Sets)
}

// Objects returns all objects of all parts, in the order in which they are applied.
func (b Bundle) Objects() []client.Object {
	var objs []client.Object
	for _, part := range b.Parts() {
		objs = append(objs, part.Objects...)
	}
	return objs
}

// validate checks what the CRD cannot: that the defaults left nothing open.
func (in Input) validate() error {
	spec := in.Spec
	switch {
	case spec.Operator.Management == providerv1.Managed && spec.Operator.Chart == nil:
		return errors.New("spec.operator.chart: there is no default: set it, or set spec.operator.management to External")
	case spec.CertManager.Management == providerv1.Managed && spec.CertManager.Chart == nil:
		return errors.New("spec.certManager.chart: there is no default: set it, or set spec.certManager.management to External")
	case spec.ProviderSource == nil:
		return errors.New("spec.providerSource: there is no default: set it")
	case spec.Core.Version == "":
		return errors.New("spec.core.version: there is no default: set it")
	}
	for i, p := range spec.Providers {
		if NewProviderObject(p.Type) == nil || p.Type == providerv1.CoreType {
			return fmt.Errorf("spec.providers[%d].type: %q is not one of %v", i, p.Type, ProviderTypes()[1:])
		}
	}
	return nil
}

func (in Input) certManagerPart() (Part, error) {
	if in.Spec.CertManager.Management == providerv1.External {
		return Part{Component: CertManager, Name: CertManager, Type: "certManager", External: true}, nil
	}
	return in.releasePart(in.certManagerRelease(), "certManager")
}

func (in Input) operatorPart() (Part, error) {
	if in.Spec.Operator.Management == providerv1.External {
		return Part{Component: Operator, Name: Operator, Type: "operator", External: true}, nil
	}
	return in.releasePart(in.operatorRelease(), "operator")
}

func (in Input) providerSetPart() Part {
	part := Part{Component: ProviderSet, Name: ProviderSet, Type: "providerSet"}
	source := in.providerSetSource(in.Spec.ProviderSource)
	if source == nil {
		part.External = true
		return part
	}
	part.Source, part.Installer, part.Objects = source, source, []client.Object{source}
	return part
}
