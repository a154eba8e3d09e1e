// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// Result is what became of a list of steps.
type Result struct {
	conditions []metav1.Condition
	mirrored   []metav1.Condition
	owned      []string
	advisory   map[string]bool
	after      time.Duration
	finished   bool
	err        error
}

// Finished says that all steps were run and none failed or waits: whatever they were for is done.
func (r Result) Finished() bool { return r.finished }

// Err returns the error of the step that failed.
func (r Result) Err() error { return r.err }

// Conditions returns the conditions of the steps that were run, in their order.
func (r Result) Conditions() []metav1.Condition { return r.conditions }

// Run runs the steps in order, until one fails or waits.
func Run[S any](ctx context.Context, scope S, steps []Step[S]) Result {
	r := Result{finished: true, advisory: map[string]bool{}}
	for _, step := range steps {
		r.owned = append(r.owned, step.Condition)
	}
	for _, step := range steps {
		outcome, err := step.Run(ctx, scope)
		if err != nil {
			r.finished, r.err = false, err
			if !errors.Is(err, context.Canceled) {
				r.add(step.Condition, metav1.ConditionFalse, reasonOf(err), err.Error())
			}
			return r
		}
		r.add(step.Condition, outcome.status, outcome.reason, outcome.message)
		r.mirrored = append(r.mirrored, outcome.mirrored...)
		if outcome.advisory {
			r.advisory[step.Condition] = true
		}
		r.finished = r.finished && (outcome.advisory || outcome.status == metav1.ConditionTrue)
		r.requeue(outcome.after)
		if !outcome.goOn {
			return r
		}
	}
	return r
}

func (r *Result) add(kind string, status metav1.ConditionStatus, reason, message string) {
	r.conditions = append(r.conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: shorten(message)})
}

func (r *Result) requeue(after time.Duration) {
	if after > 0 && (r.after == 0 || after < r.after) {
		r.after = after
	}
}

// maxMessage is the length that a message is cut to: long enough for what Flux and CAPI say, short enough to read.
const maxMessage = 1000

func shorten(message string) string {
	runes := []rune(message)
	if len(runes) <= maxMessage {
		return message
	}
	return string(runes[:maxMessage-3]) + "..."
}

// pending are the conditions of steps that have not been reached and have no condition yet.
func (r Result) pending(existing []metav1.Condition) []metav1.Condition {
	known := map[string]bool{}
	for _, c := range append(r.conditions, existing...) {
		known[c.Type] = true
	}
	var out []metav1.Condition
	for _, kind := range r.owned {
		if !known[kind] {
			out = append(out, metav1.Condition{
				Type: kind, Status: metav1.ConditionUnknown, Reason: providerv1.ReasonPending, Message: "not reached yet",
			})
		}
	}
	return out
}
