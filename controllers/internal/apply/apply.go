// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// Applier applies objects. It remembers what it applied last, so that applying the same again costs a look into the
// cache and no request, unless somebody else changed one of our fields.
type Applier struct {
	client client.Client

	mu      sync.Mutex
	applied map[identity]applied
}

// identity is what tells one object from all others.
type identity struct {
	gvk schema.GroupVersionKind
	key types.NamespacedName
}

// applied is what was applied last: of which object, and what.
type applied struct {
	uid  types.UID
	hash [sha256.Size]byte
}

// New returns an Applier that writes, and reads from the cache, with c.
func New(c client.Client) *Applier {
	return &Applier{client: c, applied: map[identity]applied{}}
}

// keptMetadata are the metadata that are applied; all others belong to the API server or to other writers.
var keptMetadata = []string{"name", "namespace", "labels", "annotations", "ownerReferences"}

// Apply makes the object on the cluster equal to obj in all fields that obj has, takes away those that an earlier obj had,
// and leaves all others alone. It says whether it wrote anything. The object must be of a kind that is in the scheme.
func (a *Applier) Apply(ctx context.Context, obj client.Object) (bool, error) {
	desired, err := a.desired(obj)
	if err != nil {
		return false, err
	}
	id := identity{desired.GroupVersionKind(), client.ObjectKeyFromObject(obj)}
	name := fmt.Sprintf("%s %s", id.gvk.Kind, id.key)
	raw, err := json.Marshal(desired.Object)
	if err != nil {
		return false, fmt.Errorf("encode %s: %w", name, err)
	}
	hash := sha256.Sum256(raw)
	live, err := a.live(ctx, id)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	if live != nil && a.last(id) == (applied{live.GetUID(), hash}) && covers(live.Object, desired.Object) {
		return false, nil
	}
	before := ""
	if live != nil {
		before = live.GetResourceVersion()
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired),
		client.FieldOwner(providerv1.FieldManager), client.ForceOwnership); err != nil {
		return false, fmt.Errorf("apply %s: %w", name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applied[id] = applied{desired.GetUID(), hash}
	return desired.GetResourceVersion() != before, nil
}

// All applies the objects in order. It stops at the first error.
func (a *Applier) All(ctx context.Context, objs ...client.Object) error {
	for _, obj := range objs {
		if _, err := a.Apply(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// forget drops what is remembered of an object that was deleted.
func (a *Applier) forget(id identity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.applied, id)
}

func (a *Applier) last(id identity) applied {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.applied[id]
}

// desired returns what is applied of an object: everything but the status and foreign metadata.
func (a *Applier) desired(obj client.Object) (*unstructured.Unstructured, error) {
	gvk, err := a.client.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	delete(content, "status")
	kept := map[string]any{}
	metadata, _ := content["metadata"].(map[string]any)
	for _, field := range keptMetadata {
		if value, ok := metadata[field]; ok {
			kept[field] = value
		}
	}
	content["metadata"] = kept
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// live returns the object as the cache knows it, or nil when it does not exist.
func (a *Applier) live(ctx context.Context, id identity) (*unstructured.Unstructured, error) {
	obj, err := a.client.Scheme().New(id.gvk)
	if err != nil {
		return nil, err
	}
	typed, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not a kind of object", id.gvk.Kind)
	}
	if err := a.client.Get(ctx, id.key, typed); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return &unstructured.Unstructured{Object: content}, err
}

// covers says whether live has everything that desired has. Lists are compared as a whole.
func covers(live, desired any) bool {
	want, ok := desired.(map[string]any)
	if !ok {
		return reflect.DeepEqual(live, desired)
	}
	have, ok := live.(map[string]any)
	if !ok {
		return len(want) == 0
	}
	for key, value := range want {
		if key == "apiVersion" || key == "kind" {
			continue // a typed object from the cache has none
		}
		if !covers(have[key], value) {
			return false
		}
	}
	return true
}
