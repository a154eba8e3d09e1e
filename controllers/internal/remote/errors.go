// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Why a cluster cannot be used. Errors of this package wrap one of them.
var (
	// ErrSecretNotFound: the Secret with the admin kubeconfig does not exist.
	ErrSecretNotFound = errors.New("admin kubeconfig not found")

	// ErrRefused: the admin kubeconfig is not one that may be used.
	ErrRefused = errors.New("admin kubeconfig refused")

	// ErrExpired: the client certificate of the admin kubeconfig has expired.
	ErrExpired = errors.New("admin kubeconfig expired")

	// ErrUnreachable: the API server does not answer, or is not the one that the admin kubeconfig describes.
	ErrUnreachable = errors.New("cluster unreachable")

	// ErrUnauthorized: the API server refuses the credentials of the admin kubeconfig.
	ErrUnauthorized = errors.New("credentials of the admin kubeconfig not accepted")
)

// Classify wraps errors of requests to a cluster with ErrUnreachable or ErrUnauthorized where they mean that. All others
// are the API server's answers to what was asked, and are returned as they are.
func Classify(err error) error {
	var (
		status apierrors.APIStatus
		reason *url.Error
	)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, ErrUnreachable), errors.Is(err, ErrUnauthorized):
		return err
	case errors.As(err, &status):
		return classifyStatus(err, status)
	case errors.As(err, &reason):
		return fmt.Errorf("%w: %s", ErrUnreachable, cause(reason))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: no answer within %s", ErrUnreachable, timeout)
	default:
		return err
	}
}

func classifyStatus(err error, status apierrors.APIStatus) error {
	code := status.Status().Code
	switch {
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%w: the API server answers 401 Unauthorized", ErrUnauthorized)
	case code >= http.StatusInternalServerError, code == http.StatusTooManyRequests:
		return fmt.Errorf("%w: the API server answers %d %s", ErrUnreachable, code, http.StatusText(int(code)))
	default:
		return err
	}
}

// cause says why a request failed without what differs from request to request, such as its URL and the local port.
func cause(err *url.Error) string {
	if err.Timeout() {
		return fmt.Sprintf("no answer within %s", timeout)
	}
	var operation *net.OpError
	if errors.As(err.Err, &operation) && operation.Err != nil {
		return fmt.Sprintf("%s: %v", operation.Op, operation.Err)
	}
	return err.Err.Error()
}
