// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hooked is a client that calls hook before each write; an error of it is that of the write, and nothing is written.
type hooked struct {
	client.Client
	hook func() error
}

func (h *hooked) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := h.hook(); err != nil {
		return err
	}
	return h.Client.Create(ctx, obj, opts...)
}

func (h *hooked) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := h.hook(); err != nil {
		return err
	}
	return h.Client.Delete(ctx, obj, opts...)
}

func (h *hooked) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := h.hook(); err != nil {
		return err
	}
	return h.Client.Patch(ctx, obj, patch, opts...)
}

func (h *hooked) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := h.hook(); err != nil {
		return err
	}
	return h.Client.Apply(ctx, obj, opts...)
}

func (h *hooked) Status() client.SubResourceWriter {
	return &hookedStatus{h.Client.Status(), h.hook}
}

type hookedStatus struct {
	client.SubResourceWriter
	hook func() error
}

func (h *hookedStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := h.hook(); err != nil {
		return err
	}
	return h.SubResourceWriter.Patch(ctx, obj, patch, opts...)
}
