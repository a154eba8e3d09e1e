// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// resolve fills in what all steps need to know.
func (s *scope) resolve(ctx context.Context) error {
	if err := s.listConfigs(ctx); err != nil {
		return err
	}
	s.claims = gitops.Claims(s.config.Name, s.configs, s.Defaults)
	s.input = s.inputFor(*s.config)
	bundle, err := gitops.Build(s.input)
	if err != nil {
		return pipeline.Invalid(providerv1.ReasonInvalidSpec, err)
	}
	s.bundle = bundle
	return nil
}

// listConfigs fills in all ProviderConfigs of this instance.
func (s *scope) listConfigs(ctx context.Context) error {
	list := &providerv1.ProviderConfigList{}
	if err := s.Client.List(ctx, list); err != nil {
		return pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("list ProviderConfigs: %w", err))
	}
	s.configs = slices.DeleteFunc(list.Items, func(c providerv1.ProviderConfig) bool {
		return c.Spec.ProviderRef.Name != s.ProviderName
	})
	if s.config.Name == "" {
		s.configs = append(s.configs, *s.config) // an init without any
	}
	return nil
}

// accept resolves and validates. It writes nothing.
func accept(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	if err := s.resolve(ctx); err != nil {
		return pipeline.Outcome{}, err
	}
	for _, p := range s.config.Spec.Profiles {
		if _, err := s.input.ClusterProfileName(p); err != nil {
			return pipeline.Outcome{}, pipeline.Invalid(providerv1.ReasonInvalidSpec, err)
		}
	}
	if outcome, err := s.checkFlux(); err != nil || !outcome.IsDone() {
		return outcome, err
	}
	return pipeline.Done("the spec is valid"), nil
}

// installCertManager installs cert-manager, or checks the one that somebody else installed.
func installCertManager(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	part := s.bundle.CertManager
	if part.External {
		outcome, err := s.checkCertManager(ctx)
		s.addExternal(part, outcome)
		return outcome, err
	}
	component, err := s.install(ctx, part)
	if err != nil || !component.Ready {
		return waitFor(component), err
	}
	return s.checkCertManager(ctx)
}

// installOperator installs the CAPI Operator, or checks the one that somebody else installed, until it answers.
func installOperator(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	part := s.bundle.Operator
	if part.External {
		outcome, err := s.checkOperator(ctx)
		s.addExternal(part, outcome)
		return outcome, err
	}
	component, err := s.install(ctx, part)
	if err != nil || !component.Ready {
		return waitFor(component), err
	}
	return s.checkOperator(ctx)
}

// checkCredentials looks whether the config Secrets of all providers exist.
func checkCredentials(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	s.missingSecrets = map[string]string{}
	var missing []string
	for _, part := range append([]gitops.Part{s.bundle.Core}, s.bundle.Providers...) {
		key := gitops.ConfigSecretKey(*part.Provider)
		if key.Name == "" {
			continue
		}
		err := s.Client.Get(ctx, key, &corev1.Secret{})
		if apierrors.IsNotFound(err) {
			s.missingSecrets[part.Component] = key.String()
			missing = append(missing, fmt.Sprintf("%s of %s %s", key, part.Type, part.Name))
		} else if err != nil {
			return pipeline.Outcome{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("read secret %s: %w", key, err))
		}
	}
	if len(missing) > 0 {
		return pipeline.Report(providerv1.ReasonSecretNotFound,
			"config Secrets do not exist: "+strings.Join(missing, ", ")+"; create them"), nil
	}
	return pipeline.Done("all config Secrets exist"), nil
}

// installCore installs the source of the provider set and the core provider, which all other providers need.
func installCore(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	if s.owns(gitops.ProviderSet) {
		if err := s.apply(ctx, s.bundle.ProviderSet); err != nil {
			return pipeline.Outcome{}, err
		}
	}
	component, err := s.install(ctx, s.bundle.Core)
	if err != nil {
		return pipeline.Outcome{}, err
	}
	if !component.Ready {
		return waitFor(component), nil
	}
	return pipeline.Done(fmt.Sprintf("cluster-api %s is installed and healthy", component.InstalledVersion)), nil
}

// installProviders installs all other providers and provider sets, and removes those that are no longer named.
func installProviders(ctx context.Context, s *scope) (pipeline.Outcome, error) {
	broken, err := s.installAll(ctx)
	if err != nil {
		return pipeline.Outcome{}, err
	}
	left, err := s.pruneUnwanted(ctx)
	if err != nil {
		return pipeline.Outcome{}, err
	}
	if len(broken) > 0 {
		messages := make([]string, 0, len(broken))
		for _, c := range broken {
			messages = append(messages, c.Message)
		}
		return pipeline.Report(broken[0].Reason, strings.Join(messages, "; ")), nil
	}
	if left.message != "" {
		return pipeline.Report(left.reason, "what is no longer named is taken away: "+left.message).Again(missingRetry), nil
	}
	message := fmt.Sprintf("%d providers", len(s.bundle.Providers))
	if len(s.bundle.Sets) > 0 {
		message += fmt.Sprintf(" and %d provider sets", len(s.bundle.Sets))
	}
	return pipeline.Done(message + " are installed and healthy"), nil
}

// installAll installs the providers besides core and the provider sets, and returns those that are not ready.
func (s *scope) installAll(ctx context.Context) ([]providerv1.Component, error) {
	var all []providerv1.Component
	for _, part := range s.bundle.Providers {
		component, err := s.install(ctx, part)
		if err != nil {
			return nil, err
		}
		all = append(all, component)
	}
	for _, part := range s.bundle.Sets {
		components, err := s.installSet(ctx, part)
		if err != nil {
			return nil, err
		}
		all = append(all, components...)
	}
	return slices.DeleteFunc(all, func(c providerv1.Component) bool { return c.Ready }), nil
}

// waitFor returns the outcome of a step whose component is not ready.
func waitFor(c providerv1.Component) pipeline.Outcome {
	return pipeline.Wait(c.Reason, c.Message, 0)
}

// pruneUnwanted takes away what this ProviderConfig installed and no longer names, and says what is left of it. What
// another ProviderConfig installs now is left to that one; and so is a CAPI Operator or cert-manager that became External:
// whoever takes it over needs it to go on.
func (s *scope) pruneUnwanted(ctx context.Context) (remains, error) {
	components, objects := map[string]bool{}, map[string]bool{}
	handedOver := map[string]bool{gitops.Operator: s.bundle.Operator.External, gitops.CertManager: s.bundle.CertManager.External}
	for _, part := range s.bundle.Parts() {
		components[part.Component] = true
		for _, obj := range part.Objects {
			objects[objectID(s.Client, obj)] = true
		}
	}
	left, err := s.remove(ctx, stage{member: func(obj client.Object) bool {
		if _, ok := obj.(operatorv1.GenericProvider); ok {
			return !components[obj.GetLabels()[providerv1.ComponentLabel]]
		}
		return !objects[objectID(s.Client, obj)] && !handedOver[obj.GetLabels()[providerv1.ComponentLabel]]
	}})
	return left, pipeline.Fail(providerv1.ReasonPlatformClusterError, err)
}
