// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/cluster-provider-capi/api/crds"
	"github.com/openmcp-project/cluster-provider-capi/controllers/internal/apply"
)

// Prepare makes the platform cluster ready for the controllers: it installs the CRDs of this provider, the CAPI Operator
// and the core provider, and waits until they work or ctx ends. Its error names what is missing. The client reads without
// a cache; tell is called with each thing that is done or waited for.
func Prepare(ctx context.Context, c client.Client, id Identity, tell func(message string)) error {
	definitions, err := crds.CRDs()
	if err != nil {
		return fmt.Errorf("read the CRDs: %w", err)
	}
	applier := apply.New(c)
	for _, crd := range definitions {
		if _, err := applier.Apply(ctx, crd); err != nil {
			return fmt.Errorf("install the CRDs: %w", err)
		}
		tell("CRD " + crd.Name + " is installed")
	}
	return newConfigReconciler(c, id).Bootstrap(ctx, func(condition metav1.Condition) {
		if condition.Status == metav1.ConditionTrue {
			tell(fmt.Sprintf("%s: %s", condition.Type, condition.Message))
			return
		}
		tell(fmt.Sprintf("%s: waiting: %s: %s", condition.Type, condition.Reason, condition.Message))
	})
}
