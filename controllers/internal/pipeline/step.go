// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// Step is one step of a reconciliation. S is the scope: what the steps of one reconciliation share.
type Step[S any] struct {
	// Condition is the type of the condition that the step owns.
	Condition string

	// Run does the step.
	Run func(ctx context.Context, scope S) (Outcome, error)
}

// Outcome is what became of a step that did not fail. It is made by Done, Wait, Report and Advise.
type Outcome struct {
	status   metav1.ConditionStatus
	reason   string
	message  string
	after    time.Duration
	goOn     bool
	advisory bool
	mirrored []metav1.Condition
}

// Done says that the step is done: its condition is True.
func Done(message string) Outcome {
	return Outcome{status: metav1.ConditionTrue, reason: providerv1.ReasonSucceeded, message: message, goOn: true}
}

// Wait says that the step waits for something: its condition is False, and the steps behind it are not run. A watch must
// bring the object back; after is for what cannot be watched, and zero otherwise.
func Wait(reason, message string, after time.Duration) Outcome {
	return Outcome{status: metav1.ConditionFalse, reason: reason, message: message, after: after}
}

// Report says that something is not as it should be, but that the steps behind may go on: the condition is False.
func Report(reason, message string) Outcome {
	return Outcome{status: metav1.ConditionFalse, reason: reason, message: message, goOn: true}
}

// Advise says that something is not as it should be, but that it does not keep the object from being ready: the condition
// is False, and counts neither for Ready nor for the phase.
func Advise(reason, message string) Outcome {
	return Outcome{status: metav1.ConditionFalse, reason: reason, message: message, goOn: true, advisory: true}
}

// Again makes the object come back after a while although all is well.
func (o Outcome) Again(after time.Duration) Outcome {
	o.after = after
	return o
}

// Mirror adds conditions that are copied from another object. Their types start with a prefix of their own; conditions
// with that prefix that are not among them are removed (see Runner.MirrorPrefix).
func (o Outcome) Mirror(conditions ...metav1.Condition) Outcome {
	o.mirrored = append(o.mirrored, conditions...)
	return o
}

// IsDone says whether the step is done.
func (o Outcome) IsDone() bool { return o.status == metav1.ConditionTrue }

// Reason returns the reason that the condition gets.
func (o Outcome) Reason() string { return o.reason }

// Message returns the message that the condition gets.
func (o Outcome) Message() string { return o.message }
