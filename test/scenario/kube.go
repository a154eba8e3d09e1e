// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	fieldOwner = "scenario"

	// patience is how long a step may take on a machine that is busy.
	patience = 4 * time.Minute

	pollPeriod = 200 * time.Millisecond
)

//go:embed manifests
var manifests embed.FS

// applyManifest applies a file of manifests, with the target's values in it, and shows it.
func (p *play) applyManifest(ctx context.Context, name string) error {
	raw, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return err
	}
	return p.apply(ctx, os.Expand(string(raw), func(variable string) string {
		return map[string]string{
			"IMAGE":    p.Image,
			"DEFAULTS": "    " + strings.ReplaceAll(strings.TrimSpace(p.Defaults), "\n", "\n    "),
			"LOCAL":    p.Local,

			"LOCAL_MISSING":    p.Local[:strings.LastIndex(p.Local, ":")+1] + "v0.9.9",
			"LOCAL_REPOSITORY": p.Local[:strings.LastIndex(p.Local, ":")],
			"GIT":              p.git, "SET_VERSION": p.setVersionOf,
			"VERSION": p.Local[strings.LastIndex(p.Local, ":")+1:],
		}[variable]
	}))
}

// apply applies objects as `kubectl apply --server-side` does. What the platform cluster is not ready for yet is tried
// again.
func (p *play) apply(ctx context.Context, text string) error {
	for obj, err := range decode(text) {
		if err != nil {
			return err
		}
		err := p.until(ctx, "apply "+describe(obj), func(ctx context.Context) (string, error) {
			err := p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(fieldOwner), client.ForceOwnership)
			if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
				return "", err
			}
			if err != nil {
				return err.Error(), nil
			}
			return "", nil
		})
		if err != nil {
			return err
		}
		p.printf("      applied %s\n", describe(obj))
	}
	return nil
}

// decode returns the objects of a text with YAML documents.
func decode(text string) iter.Seq2[*unstructured.Unstructured, error] {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for {
			obj := &unstructured.Unstructured{}
			err := decoder.Decode(obj)
			if errors.Is(err, io.EOF) || (err == nil && len(obj.Object) > 0 && !yield(obj, nil)) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("read the manifests: %w", err))
				return
			}
		}
	}
}

// until asks again and again, until the answer is empty; it shows each new answer, which says what is missing.
func (p *play) until(ctx context.Context, what string, ask func(ctx context.Context) (string, error)) error {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		answer, err := ask(ctx)
		if err != nil {
			return false, err
		}
		if answer != "" && answer != last {
			last = answer
			p.printf("      ... %s\n", answer)
		}
		return answer == "", nil
	})
	if err != nil && last != "" {
		return fmt.Errorf("%s: %w: %s", what, err, last)
	} else if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// get reads an object; it returns what is missing when it is not there.
func (p *play) get(ctx context.Context, obj client.Object) (string, error) {
	err := p.client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return p.name(obj) + " does not exist yet", nil
	}
	return "", err
}

// untilCondition waits until a condition of an object is True.
func (p *play) untilCondition(ctx context.Context, obj client.Object, kind string, conditions func() []metav1.Condition) error {
	return p.until(ctx, "wait for "+p.name(obj), func(ctx context.Context) (string, error) {
		missing, err := p.get(ctx, obj)
		if missing != "" || err != nil {
			return missing, err
		}
		c := apimeta.FindStatusCondition(conditions(), kind)
		switch {
		case c == nil:
			return fmt.Sprintf("%s has no condition %s yet", p.name(obj), kind), nil
		case c.Status != metav1.ConditionTrue:
			return fmt.Sprintf("%s: %s: %s", p.name(obj), c.Reason, c.Message), nil
		case c.ObservedGeneration != 0 && c.ObservedGeneration != obj.GetGeneration():
			return p.name(obj) + " has changed", nil
		}
		return "", nil
	})
}

// remove deletes an object and waits until it is gone.
func (p *play) remove(ctx context.Context, obj client.Object, conditions func() []metav1.Condition) error {
	if err := p.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", p.name(obj), err)
	}
	return p.until(ctx, "wait until "+p.name(obj)+" is gone", func(ctx context.Context) (string, error) {
		missing, err := p.get(ctx, obj)
		if missing != "" || err != nil {
			return "", err
		}
		return p.stillThere(obj, conditions()), nil
	})
}

// serializers decode Tables.
var serializers = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
}()

// stillThere says why an object that is being deleted is still there, in the words of its Ready condition.
func (p *play) stillThere(obj client.Object, conditions []metav1.Condition) string {
	c := apimeta.FindStatusCondition(conditions, "Ready")
	if obj.GetDeletionTimestamp() == nil || c == nil || c.Status == metav1.ConditionTrue {
		return p.name(obj) + " is still there"
	}
	return fmt.Sprintf("%s: %s: %s", p.name(obj), c.Reason, c.Message)
}

// show prints what `kubectl get KIND -A` prints.
func (p *play) show(ctx context.Context, kinds ...schema.GroupVersionKind) error {
	for _, kind := range kinds {
		mapping, err := p.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		config := rest.CopyConfig(p.Config)
		config.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io"
		httpClient, err := rest.HTTPClientFor(config)
		if err != nil {
			return err
		}
		api, err := apiutil.RESTClientForGVK(kind, false, false, config, serializers, httpClient)
		if err != nil {
			return err
		}
		table := &metav1.Table{}
		if err := api.Get().Resource(mapping.Resource.Resource).Do(ctx).Into(table); err != nil {
			return fmt.Errorf("list %s: %w", mapping.Resource.Resource, err)
		}
		if err := decodeRows(table); err != nil {
			return err
		}
		p.printf("\n      $ kubectl get %s -A\n", mapping.Resource.Resource)
		var text bytes.Buffer
		printer := printers.NewTablePrinter(printers.PrintOptions{WithNamespace: mapping.Scope.Name() == apimeta.RESTScopeNameNamespace})
		if err := printer.PrintObj(table, &text); err != nil {
			return err
		}
		for line := range strings.Lines(text.String()) {
			p.printf("      %s", line)
		}
	}
	p.printf("\n")
	return nil
}

// decodeRows decodes the metadata that the rows of a Table come with, as the printer wants it.
func decodeRows(table *metav1.Table) error {
	for i := range table.Rows {
		metadata := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(table.Rows[i].Object.Raw, metadata); err != nil {
			return err
		}
		table.Rows[i].Object.Object = metadata
	}
	return nil
}

// name returns kind and name of an object.
func (p *play) name(obj client.Object) string {
	gvk, err := p.client.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return gvk.Kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}

func describe(obj *unstructured.Unstructured) string {
	return obj.GetKind() + " " + strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}
