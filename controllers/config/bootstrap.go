// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/pipeline"
)

// bootstrapPeriod is how often Bootstrap looks whether it can go on.
const bootstrapPeriod = time.Second

// bootstrapSteps are what must be there before `run` can watch all that it watches: they end with the core provider.
var bootstrapSteps = installSteps[:5]

// Bootstrap installs the CAPI Operator and the core provider, as the ProviderConfig asks for that owns them or, as long
// as there is none, by the defaults; and waits until both work or ctx ends. It calls tell with every condition that
// changes, and returns the error that the last one stands for. The status of the ProviderConfig is not written.
func (r *Reconciler) Bootstrap(ctx context.Context, tell func(metav1.Condition)) error {
	told := map[string]string{}
	var last error
	err := wait.PollUntilContextCancel(ctx, bootstrapPeriod, true, func(ctx context.Context) (bool, error) {
		config, err := r.bootstrapConfig(ctx)
		if err != nil {
			last = err
			return false, nil
		}
		result := pipeline.Run(ctx, &scope{Reconciler: r, config: config, takesOver: true}, bootstrapSteps)
		for _, c := range result.Conditions() {
			if state := string(c.Status) + c.Message; told[c.Type] != state {
				told[c.Type] = state
				tell(c)
			}
			if c.Status != metav1.ConditionTrue {
				last = fmt.Errorf("%s: %s: %s", c.Type, c.Reason, c.Message)
			}
		}
		if errors.Is(result.Err(), reconcile.TerminalError(nil)) {
			return false, last
		}
		return apimeta.IsStatusConditionTrue(result.Conditions(), providerv1.CoreReadyCondition), nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// bootstrapConfig returns the oldest ProviderConfig, which owns the CAPI Operator and the core provider, or an empty one
// when there is none.
func (r *Reconciler) bootstrapConfig(ctx context.Context) (*providerv1.ProviderConfig, error) {
	empty := &providerv1.ProviderConfig{Spec: providerv1.ProviderConfigSpec{
		ProviderRef: providerv1.ProviderReference{Name: r.ProviderName},
	}}
	s := &scope{Reconciler: r, config: empty}
	if err := s.listConfigs(ctx); err != nil {
		return nil, err
	}
	oldest := empty
	for i, config := range s.configs {
		if config.Name == "" || config.DeletionTimestamp != nil {
			continue
		}
		if oldest == empty || config.CreationTimestamp.Before(&oldest.CreationTimestamp) ||
			(config.CreationTimestamp.Equal(&oldest.CreationTimestamp) && config.Name < oldest.Name) {
			oldest = &s.configs[i]
		}
	}
	return oldest, nil
}
