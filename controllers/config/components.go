// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
	"github.com/openmcp-project/cluster-provider-capi/gitops"
)

// installers are the kinds of Flux objects that install something.
func installers() []client.ObjectList {
	return []client.ObjectList{&kustomizev1.KustomizationList{}, &helmv2.HelmReleaseList{}}
}

// sources are the kinds of Flux objects that installers read from.
func sources() []client.ObjectList {
	return []client.ObjectList{
		&sourcev1.OCIRepositoryList{}, &sourcev1.GitRepositoryList{}, &sourcev1.HelmRepositoryList{}, &sourcev1.BucketList{},
	}
}

// install applies a part of the bundle, if it is for this ProviderConfig to do so, and returns the state of its
// component, which it also adds to the status.
func (s *scope) install(ctx context.Context, part gitops.Part) (providerv1.Component, error) {
	component := describe(part)
	var health gitops.Health
	switch missing, isMissing := s.missingSecrets[part.Component]; {
	case s.claims[part.Component].Conflict:
		health = gitops.Health{Reason: providerv1.ReasonConflict, Message: fmt.Sprintf(
			"%s %s: ProviderConfig %s, which is older, installs it with another spec: make both specs equal, or leave it out here",
			part.Type, part.Name, s.claims[part.Component].Owner)}
	case isMissing:
		health = gitops.Health{Reason: providerv1.ReasonSecretNotFound, Message: fmt.Sprintf(
			"%s %s: config Secret %s does not exist: create it", part.Type, part.Name, missing)}
	default:
		var err error
		if health, err = s.applyAndRead(ctx, part, &component); err != nil {
			return component, err
		}
	}
	component.Ready = health.Ready || (health.Routine && s.wasReady(component))
	if !component.Ready {
		component.Reason, component.Message = health.Reason, health.Message
	}
	s.components = append(s.components, component)
	return component, nil
}

// wasReady says whether a component was ready in the same version when the ProviderConfig was reconciled last.
func (s *scope) wasReady(component providerv1.Component) bool {
	return slices.ContainsFunc(s.config.Status.Components, func(c providerv1.Component) bool {
		return c.Ready && c.Type == component.Type && c.Name == component.Name && c.Version == component.Version
	})
}

// applyAndRead applies a part, if it is for this ProviderConfig to do so, and returns its health. A provider is never
// downgraded.
func (s *scope) applyAndRead(ctx context.Context, part gitops.Part, c *providerv1.Component) (gitops.Health, error) {
	if s.owns(part.Component) {
		running, err := s.installedVersion(ctx, part)
		if err != nil {
			return gitops.Health{}, err
		}
		if running != "" && gitops.CompareVersions(part.Version, running) < 0 {
			c.InstalledVersion = running
			return gitops.Health{Reason: providerv1.ReasonDowngradeNotSupported, Message: fmt.Sprintf(
				"%s %s: version %s is older than %s, which is installed: a provider cannot be downgraded, since its objects may be "+
					"stored in a newer form; ask for %s or a newer one", part.Type, part.Name, part.Version, running, running)}, nil
		}
		if err := s.apply(ctx, part); err != nil {
			return gitops.Health{}, err
		}
	}
	return s.health(ctx, part, c)
}

// installedVersion returns the version of a provider that the CAPI Operator has installed; empty when there is none.
func (s *scope) installedVersion(ctx context.Context, part gitops.Part) (string, error) {
	if part.Provider == nil {
		return "", nil
	}
	object := gitops.NewProviderObject(part.Provider.Type)
	if err := s.Client.Get(ctx, gitops.ProviderKey(*part.Provider), object); err != nil {
		return "", pipeline.Fail(providerv1.ReasonPlatformClusterError, client.IgnoreNotFound(err))
	}
	return ptr.Deref(object.GetStatus().InstalledVersion, ""), nil
}

// describe returns what is known of a component before its state is read.
func describe(part gitops.Part) providerv1.Component {
	c := providerv1.Component{Name: part.Name, Type: part.Type, Version: part.Version}
	if part.Installer != nil {
		c.Flux = &providerv1.FluxReference{
			Kind: part.Installer.GetObjectKind().GroupVersionKind().Kind,
			Name: part.Installer.GetName(), Namespace: part.Installer.GetNamespace(),
		}
	}
	return c
}

// addExternal adds a component that somebody else installs to the status.
func (s *scope) addExternal(part gitops.Part, outcome pipeline.Outcome) {
	component := describe(part)
	component.Ready = outcome.IsDone()
	if !component.Ready {
		component.Reason, component.Message = outcome.Reason(), outcome.Message()
	}
	s.components = append(s.components, component)
}

// apply applies the objects of a part, and makes Flux look at them now when that was asked for.
func (s *scope) apply(ctx context.Context, part gitops.Part) error {
	if foreign, err := s.isOfOtherRelease(ctx, part); err != nil || foreign {
		return err
	}
	if err := s.Applier.All(ctx, part.Objects...); err != nil {
		return pipeline.Fail(providerv1.ReasonPlatformClusterError, err)
	}
	if !s.nudge {
		return nil
	}
	for _, obj := range part.Objects {
		if err := s.requestReconcile(ctx, obj); err != nil {
			return pipeline.Fail(providerv1.ReasonPlatformClusterError, err)
		}
	}
	return nil
}

// isOfOtherRelease says whether the init of another release of the provider has applied a part since.
func (s *scope) isOfOtherRelease(ctx context.Context, part gitops.Part) (bool, error) {
	ours := part.Installer.GetAnnotations()[providerv1.ReleaseAnnotation]
	if s.takesOver || ours == "" {
		return false, nil
	}
	live, err := s.emptyLike(part.Installer)
	if err != nil {
		return false, err
	}
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(part.Installer), live); err != nil {
		return false, pipeline.Fail(providerv1.ReasonPlatformClusterError, client.IgnoreNotFound(err))
	}
	theirs := live.GetAnnotations()[providerv1.ReleaseAnnotation]
	if theirs == "" || theirs == ours {
		return false, nil
	}
	ctrl.LoggerFrom(ctx).Info("Left alone what another release of the provider has applied",
		"component", part.Component, "ourRelease", ours, "theirRelease", theirs)
	return true, nil
}

// requestReconcile sets the annotations with which `flux reconcile` asks for a reconciliation; for a HelmRelease that is
// stuck also those of its flags --reset and --force. They belong to whoever set them last, not to what is applied.
func (s *scope) requestReconcile(ctx context.Context, obj client.Object) error {
	target, err := s.emptyLike(obj)
	if err != nil {
		return err
	}
	target.SetName(obj.GetName())
	target.SetNamespace(obj.GetNamespace())
	now := s.Clock.Now().Format(time.RFC3339Nano)
	annotations := map[string]string{meta.ReconcileRequestAnnotation: now}
	if _, isRelease := obj.(*helmv2.HelmRelease); isRelease {
		health, err := s.fluxHealth(ctx, obj)
		if err != nil {
			return err
		}
		if health.Reason == providerv1.ReasonFluxStalled || health.Reason == providerv1.ReasonFluxFailed {
			annotations[helmv2.ResetRequestAnnotation], annotations[helmv2.ForceRequestAnnotation] = now, now
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	return s.Client.Patch(ctx, target, client.RawPatch(client.Merge.Type(), patch))
}

// health reads the state of a component: of the provider object first, since it tells most, then of the Flux object that
// installs it, then of the source of that.
func (s *scope) health(ctx context.Context, part gitops.Part, c *providerv1.Component) (gitops.Health, error) {
	installer, err := s.fluxHealth(ctx, part.Installer)
	if err != nil {
		return gitops.Health{}, err
	}
	if part.Provider == nil {
		c.InstalledVersion, err = s.releasedVersion(ctx, part.Installer)
		if err != nil {
			return gitops.Health{}, err
		}
		return s.blameSource(ctx, part, installer)
	}
	object := gitops.NewProviderObject(part.Provider.Type)
	err = s.Client.Get(ctx, gitops.ProviderKey(*part.Provider), object)
	if apierrors.IsNotFound(err) {
		if installer.Ready {
			return gitops.Health{Reason: providerv1.ReasonProgressing, Message: fmt.Sprintf(
				"%s %s is gone: Flux will bring it back", part.Type, part.Name)}, nil
		}
		installer.Routine = false
		return s.blameSource(ctx, part, installer)
	} else if err != nil {
		return gitops.Health{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("read %s %s: %w", part.Type, part.Name, err))
	}
	if installed := object.GetStatus().InstalledVersion; installed != nil {
		c.InstalledVersion = *installed
	}
	provider := gitops.ProviderHealth(object, part.Version)
	if !provider.Ready && (provider.Reason == providerv1.ReasonProviderFailed || installer.Reason != providerv1.ReasonFluxStalled) {
		return s.blameSource(ctx, part, provider)
	}
	return s.blameSource(ctx, part, installer)
}

// blameSource returns the health of a part's source when that is why the part is only progressing or failed in Flux.
func (s *scope) blameSource(ctx context.Context, part gitops.Part, health gitops.Health) (gitops.Health, error) {
	if health.Ready || part.Source == nil || part.Source == part.Installer || health.Reason == providerv1.ReasonProviderFailed {
		return health, nil
	}
	source, err := s.fluxHealth(ctx, part.Source)
	if err != nil {
		return gitops.Health{}, err
	}
	if source.Reason == providerv1.ReasonFluxFailed || source.Reason == providerv1.ReasonFluxStalled {
		return gitops.Health{Reason: providerv1.ReasonSourceNotReady, Message: source.Message}, nil
	}
	return health, nil
}

// fluxHealth reads the state of a Flux object by its name.
func (s *scope) fluxHealth(ctx context.Context, obj client.Object) (gitops.Health, error) {
	live, err := s.emptyLike(obj)
	if err != nil {
		return gitops.Health{}, err
	}
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	err = s.Client.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if apierrors.IsNotFound(err) {
		return gitops.Health{Reason: providerv1.ReasonProgressing, Message: fmt.Sprintf(
			"%s %s does not exist yet", kind, client.ObjectKeyFromObject(obj))}, nil
	} else if err != nil {
		return gitops.Health{}, pipeline.Fail(providerv1.ReasonPlatformClusterError, fmt.Errorf("read %s: %w", kind, err))
	}
	return gitops.FluxHealth(live), nil
}

// releasedVersion returns the chart version that a HelmRelease has deployed, or the revision that a Kustomization has
// applied; empty when there is none.
func (s *scope) releasedVersion(ctx context.Context, installer client.Object) (string, error) {
	if _, ok := installer.(*kustomizev1.Kustomization); ok {
		kustomization := &kustomizev1.Kustomization{}
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(installer), kustomization)
		return kustomization.Status.LastAppliedRevision, pipeline.Fail(providerv1.ReasonPlatformClusterError, client.IgnoreNotFound(err))
	}
	release := &helmv2.HelmRelease{}
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(installer), release); err != nil {
		return "", pipeline.Fail(providerv1.ReasonPlatformClusterError, client.IgnoreNotFound(err))
	}
	if latest := release.Status.History.Latest(); latest != nil && latest.Status == "deployed" {
		return latest.ChartVersion, nil
	}
	return "", nil
}

// emptyLike returns a new object of the same kind.
func (s *scope) emptyLike(obj client.Object) (client.Object, error) {
	gvk, err := s.Client.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	fresh, err := s.Client.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	out, ok := fresh.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no kind of object", gvk.Kind)
	}
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return out, nil
}

// objectID returns a text that tells an object from all others.
func objectID(c client.Client, obj client.Object) string {
	gvk, _ := c.GroupVersionKindFor(obj)
	return gvk.GroupKind().String() + " " + client.ObjectKeyFromObject(obj).String()
}

// claimedByOther says whether the component of an object is for another ProviderConfig to install.
func (s *scope) claimedByOther(obj client.Object) bool {
	component := obj.GetLabels()[providerv1.ComponentLabel]
	for _, other := range s.configs {
		if other.Name != s.config.Name && other.DeletionTimestamp == nil {
			if claim, ok := gitops.Claims(other.Name, s.configs, s.Defaults)[component]; ok && claim.Owner == other.Name {
				return true
			}
		}
	}
	return false
}
