// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

const (
	// providerTimeout is how long Flux waits for a provider to become healthy before it reports that and tries again.
	// Flux does not look at a changed spec while it waits, so this is also how long a correction may take to be seen.
	providerTimeout = 2 * time.Minute

	// providerRetry is how long Flux waits before it tries again.
	providerRetry = 30 * time.Second
)

// The health of a provider object, in CEL, by the rules of ProviderHealth. The order of the terms matters: a missing
// status is an error in CEL, which || hides behind a true term and && behind a false one. That observedGeneration is
// the current one is checked by Flux itself.
const (
	providerInProgress = `!has(metadata.finalizers) || has(metadata.deletionTimestamp) || !has(status.conditions)`

	providerFailed = `status.conditions.exists(c, c.status == 'False' && (` +
		`c.type == 'ProviderUpgraded' || ` +
		`(c.type == 'ProviderInstalled' && c.reason != 'TimedOutWaitingForDeployment') || ` +
		`(c.type == 'PreflightCheckPassed' && c.reason != 'WaitingForCoreProviderReady')))`

	providerCurrent = `has(status.observedGeneration) && status.observedGeneration == metadata.generation && ` +
		`has(status.installedVersion) && status.installedVersion == spec.version && ` +
		`['PreflightCheckPassed', 'ProviderInstalled', 'Ready'].all(t, ` +
		`status.conditions.exists(c, c.type == t && c.status == 'True')) && ` +
		`!status.conditions.exists(c, c.type == 'ProviderUpgraded' && c.status == 'False')`
)

// providerPart returns the part of a bundle that is a CAPI provider: one Kustomization, which applies the base of its
// type from the provider set.
func (in Input) providerPart(p providerv1.Provider) (Part, error) {
	component := ComponentKey(p.Type, p.Name)
	patches, err := providerPatches(p)
	if err != nil {
		return Part{}, fmt.Errorf("provider %s: %w", component, err)
	}
	key := ProviderKey(p)
	obj := &kustomizev1.Kustomization{
		TypeMeta:   typeMeta(kustomizev1.GroupVersion.String(), kustomizev1.KustomizationKind),
		ObjectMeta: in.meta(component),
		Spec: kustomizev1.KustomizationSpec{
			CommonMetadata: &kustomizev1.CommonMetadata{Labels: in.labels(component)},
			Interval:       *duration(in.interval()),
			RetryInterval:  duration(providerRetry),
			Timeout:        duration(providerTimeout),
			Suspend:        in.Spec.Suspend,
			SourceRef:      in.providerSetRef(),
			Path:           "./" + path.Join(in.Spec.ProviderSource.Path, "providers", strings.ToLower(string(p.Type))),
			Prune:          true,
			Wait:           true,
			PostBuild: &kustomizev1.PostBuild{Substitute: map[string]string{
				"PROVIDER_NAME": asText(p.Name), "PROVIDER_NAMESPACE": asText(key.Namespace), "PROVIDER_VERSION": p.Version,
			}},
			Patches:          patches,
			HealthCheckExprs: []kustomize.CustomHealthCheck{healthCheck(p.Type)},
		},
	}
	if p.Type != providerv1.CoreType {
		obj.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: in.name(Core)}}
	}
	return Part{
		Component: component, Name: p.Name, Type: string(p.Type), Version: p.Version, Provider: &p,
		Source: in.providerSetSource(in.Spec.ProviderSource), Installer: obj, Objects: []client.Object{obj},
	}, nil
}

// asText returns a value that Flux substitutes, quoted when YAML would take it for something else than a text: a number,
// for example. A quote that is in the base would not help, since kustomize drops it before Flux substitutes.
func asText(value string) string {
	var read any
	if err := yaml.Unmarshal([]byte(value), &read); err == nil && read == any(value) {
		return value
	}
	return strconv.Quote(value)
}

// providerSetRef returns the reference to the source of the provider set.
func (in Input) providerSetRef() kustomizev1.CrossNamespaceSourceReference {
	source := in.Spec.ProviderSource
	if ref := source.SourceRef; ref != nil {
		return kustomizev1.CrossNamespaceSourceReference{Kind: ref.Kind, Name: ref.Name, Namespace: ref.Namespace}
	}
	kind := "OCIRepository"
	if source.Git != nil {
		kind = "GitRepository"
	} else if source.Bucket != nil {
		kind = "Bucket"
	}
	return kustomizev1.CrossNamespaceSourceReference{Kind: kind, Name: in.name(ProviderSet)}
}

// jsonPatch is one operation of an RFC 6902 patch.
type jsonPatch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// providerPatches returns the patches that bring everything but name, namespace and version into the base of a
// provider. They are JSON, since kustomize does not read all the YAML that can be written. Flux substitutes variables
// after it has patched, and takes two dollar signs for one, so each is doubled.
func providerPatches(p providerv1.Provider) ([]kustomize.Patch, error) {
	ops := providerPatch(p)
	if len(ops) == 0 {
		return nil, nil
	}
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(ops); err != nil {
		return nil, err
	}
	if err := checkTexts(raw.Bytes()); err != nil {
		return nil, err
	}
	return []kustomize.Patch{{
		Target: &kustomize.Selector{Kind: objectKind(p.Type)},
		Patch:  strings.ReplaceAll(raw.String(), "$", "$$"),
	}}, nil
}

// checkTexts refuses the one kind of text that kustomize cannot carry: it writes a text of several lines that begins with
// a tab as a YAML block, which it cannot read again.
func checkTexts(raw []byte) error {
	var ops []struct {
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if err := json.Unmarshal(raw, &ops); err != nil {
		return err
	}
	for _, op := range ops {
		if path := unreadable(strings.TrimPrefix(op.Path, "/spec/"), op.Value); path != "" {
			return fmt.Errorf("%s: a text of several lines must not begin with a tab: kustomize, which Flux builds with, cannot read it", path)
		}
	}
	return nil
}

// unreadable returns the path of a text that kustomize cannot carry; empty when there is none.
func unreadable(path string, value any) string {
	switch v := value.(type) {
	case string:
		if strings.HasPrefix(v, "\t") && strings.Contains(v, "\n") {
			return path
		}
	case []any:
		for i, item := range v {
			if found := unreadable(fmt.Sprintf("%s[%d]", path, i), item); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := cmp.Or(unreadable(path+"."+key, key), unreadable(path+"."+key, v[key])); found != "" {
				return found
			}
		}
	}
	return ""
}

// providerPatch returns the operations that add the options of a provider to its base.
func providerPatch(p providerv1.Provider) []jsonPatch {
	var ops []jsonPatch
	add := func(field string, present bool, value any) {
		if present {
			ops = append(ops, jsonPatch{Op: "add", Path: "/spec/" + field, Value: value})
		}
	}
	manager := p.Manager
	if len(p.FeatureGates) > 0 {
		manager = manager.DeepCopy()
		if manager == nil {
			manager = &operatorv1.ManagerSpec{}
		}
		manager.FeatureGates = p.FeatureGates
	}
	if ref := p.ConfigSecretRef; ref != nil {
		key := ConfigSecretKey(p)
		add("configSecret", true, operatorv1.SecretReference{Name: key.Name, Namespace: key.Namespace})
	}
	add("fetchConfig", p.Fetch != nil, p.Fetch)
	add("manager", manager != nil, manager)
	add("deployment", p.Deployment != nil, p.Deployment)
	add("additionalManifests", p.AdditionalManifests != nil, p.AdditionalManifests)
	add("additionalDeployments", len(p.AdditionalDeployments) > 0, p.AdditionalDeployments)
	add("patches", len(p.Patches) > 0, p.Patches)
	return ops
}

// ConfigSecretKey returns the name and namespace of a provider's config Secret; the name is empty when it has none.
func ConfigSecretKey(p providerv1.Provider) client.ObjectKey {
	if p.ConfigSecretRef == nil {
		return client.ObjectKey{}
	}
	key := client.ObjectKey{Name: p.ConfigSecretRef.Name, Namespace: p.ConfigSecretRef.Namespace}
	if key.Namespace == "" {
		key.Namespace = ProviderKey(p).Namespace
	}
	return key
}
