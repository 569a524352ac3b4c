package oci

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/text"
)

// contentError reports content that a registry has sent and that is not what its digest and size identify.
type contentError struct {
	what, digest string
	cause        error
}

func (e *contentError) Error() string {
	return fmt.Sprintf("the registry sent a %s that does not match %s: %s; it is broken, or someone altered it", e.what, e.digest, text.Escape(e.cause.Error()))
}

func (e *contentError) Unwrap() error { return e.cause }

// TagConflictError is the error of a tag that names something else already.
type TagConflictError struct {
	Tag, Found, Wanted string
}

func (e *TagConflictError) Error() string {
	return fmt.Sprintf("tag %s already names %s, not %s, and versions do not change: raise operatorVersion, name another tag, or move the tag with --overwrite",
		e.Tag, e.Found, e.Wanted)
}

// placeError is an error about a reference, which is explained where it is printed.
type placeError struct {
	at    artifact.Reference
	cause error
}

// errorAt returns an error about a reference; nil if there is none.
func errorAt(at artifact.Reference, err error) error {
	if err == nil {
		return nil
	}
	return &placeError{at, err}
}

func (e *placeError) Error() string { return fmt.Sprintf("%s: %v", e.at, explain(e.at.Host, e.cause)) }

func (e *placeError) Unwrap() error { return e.cause }

// maxMessage limits messages of servers.
const maxMessage = 500

// isNotFound reports whether a registry does not have what was asked for.
func isNotFound(err error) bool {
	var refused *errcode.ErrorResponse
	return errors.Is(err, errdef.ErrNotFound) || errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound
}

// explain returns the error of a request to a registry with what fixes it.
func explain(host string, err error) error {
	var refused *errcode.ErrorResponse
	var altered *contentError
	var conflict *TagConflictError
	var failed *url.Error
	switch {
	case errors.As(err, &altered):
		return altered
	case errors.As(err, &conflict):
		return conflict
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return &AccessError{host, http.StatusUnauthorized}
	case isNotFound(err):
		return &AbsenceError{host}
	case errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden):
		return &AccessError{host, refused.StatusCode}
	case errors.As(err, &refused):
		return fmt.Errorf("%s returned %d: %s", host, refused.StatusCode, text.Escape(text.Truncate(refused.Error(), maxMessage)))
	case errors.As(err, &failed):
		return explainConnection(host, failed.Err) // without the URL, which may contain credentials
	}
	return errors.New(text.Escape(text.Truncate(err.Error(), maxMessage)))
}

// AccessError is the error of a registry that refuses access.
type AccessError struct {
	Host   string
	Status int
}

func (e *AccessError) Error() string {
	return fmt.Sprintf("%s: log in with 'docker login %s'", e.Refusal(), e.Host)
}

// Refusal returns the error without what fixes it.
func (e *AccessError) Refusal() string {
	return fmt.Sprintf("%s refused access (%d %s)", e.Host, e.Status, http.StatusText(e.Status))
}

// AbsenceError is the error of a registry that does not have what was asked for, or does not show it.
type AbsenceError struct{ Host string }

func (e *AbsenceError) Error() string {
	return fmt.Sprintf("%s has nothing at this place, or does not show it without 'docker login %s'", e.Host, e.Host)
}

// connectionError is the error of a connection.
type connectionError struct {
	host  string
	cause error
}

func (e *connectionError) Error() string {
	return fmt.Sprintf("connecting to %s: %s", e.host, text.Escape(text.Truncate(e.cause.Error(), maxMessage)))
}

func (e *connectionError) Unwrap() error { return e.cause }

// explainConnection returns the error of a connection with what fixes it.
func explainConnection(host string, err error) error {
	var invalid *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.As(err, &invalid):
		return fmt.Errorf("the certificate of %s is not trusted (%w): name its authority with --ca-file", host, invalid.Err)
	case errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &tls.RecordHeaderError{}):
		return fmt.Errorf("%s does not use TLS: connect to it without TLS by --plain-http %s", host, host)
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s did not answer in time", host)
	}
	return &connectionError{host, err}
}
