// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	providerv1 "github.com/openmcp-project/cluster-provider-capi/api/v1alpha1"
)

// stepError is an error with the reason that its condition gets.
type stepError struct {
	reason   string
	err      error
	terminal bool
}

// Error returns the message of the error behind it.
func (e *stepError) Error() string { return e.err.Error() }

// Reason returns the reason that the condition gets.
func (e *stepError) Reason() string { return e.reason }

// Unwrap returns the error behind it and, when no retry can help, controller-runtime's mark for that.
func (e *stepError) Unwrap() []error {
	if e.terminal {
		return []error{e.err, reconcile.TerminalError(nil)}
	}
	return []error{e.err}
}

// Fail returns an error that is worth another try, with backoff. It returns nil for nil.
func Fail(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{reason: reason, err: err}
}

// Invalid returns an error that only a change of the spec can mend: it is not tried again before that. It returns nil
// for nil.
func Invalid(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{reason: reason, err: err, terminal: true}
}

// reasonOf returns the reason of an error.
func reasonOf(err error) string {
	var reasonable interface{ Reason() string }
	if errors.As(err, &reasonable) && reasonable.Reason() != "" {
		return reasonable.Reason()
	}
	return providerv1.ReasonInternalError
}
