package sender

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"unicode"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// contextFailure is for an attempt whose context ended. A deadline, the attempt's or the caller's, is a timeout; any other end
// is an interruption by this program.
func contextFailure(ctx context.Context, sent bool) *godwit.Failure {
	if interrupted(ctx) {
		return &godwit.Failure{Kind: godwit.FailureInterrupted, Sent: sent, Detail: ErrInterrupted.Error()}
	}
	return timedOut(sent)
}

func timedOut(sent bool) *godwit.Failure {
	text := "deadline passed before the request was sent"
	if sent {
		text = "deadline passed before the response was complete"
	}
	return &godwit.Failure{Kind: godwit.FailureTimeout, Sent: sent, Detail: text}
}

// failedBeforeResponse returns why there is no response header, and the status if the status line had arrived. It decides by
// how far the request got and by the types of errors, never by their text.
func (t *trip) failedBeforeResponse(ctx context.Context, err error) (*godwit.Failure, int) {
	switch {
	case ctx.Err() != nil:
		return contextFailure(ctx, t.sent()), 0
	case t.conn == nil:
		return failedToConnect(err), 0
	case t.wire == nil:
		return failedStream(err), 0
	}
	return failedHTTP1(err, t.wire.seen())
}

// failedHTTP1 returns why a connection gave no response header to a request.
func failedHTTP1(err error, s seen) (*godwit.Failure, int) {
	fail := func(kind godwit.FailureKind, text string) *godwit.Failure {
		return &godwit.Failure{Kind: kind, Sent: s.sent, Detail: text}
	}
	switch {
	case s.line == lineNone && alerted(err):
		// A TLS 1.3 server refuses a missing or foreign client certificate after the client's handshake is over.
		return fail(godwit.FailureTLSHandshake, detail(err)), 0
	case s.line == lineNone:
		return fail(godwit.FailureReset, "connection closed before a response"), 0
	case s.line == linePartial:
		return fail(godwit.FailureReset, "connection closed within the status line"), 0
	case s.line == lineForeign:
		return fail(godwit.FailureProtocol, "response is not valid HTTP"), 0
	case !s.cut:
		// The connection decides, not the error: net/http calls a header cut within a line malformed.
		return fail(godwit.FailureProtocol, "response header is not valid or too large"), s.status
	case s.status >= 100 && s.status <= 199:
		return fail(godwit.FailureReset, "connection closed after an interim response"), 0
	default:
		return fail(godwit.FailureTruncated, "connection closed within the response header"), s.status
	}
}

// failedToConnect returns why there is no connection. Nothing was sent.
func failedToConnect(err error) *godwit.Failure {
	f := &godwit.Failure{Kind: godwit.FailureConnect, Detail: detail(err)}
	var (
		op      *net.OpError
		blocked *blockedError
		dns     *net.DNSError
		dial    *dialError
	)
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		// The proxy is the operator's; its failure says nothing about the receiver.
	case errors.As(err, &blocked):
		// Without the address: a user who registers names must not learn from this what they resolve to inside our network.
		f.Kind, f.Detail = godwit.FailureBlockedAddress, "the name leads to an address that is not a permitted destination"
	case unverified(err):
		f.Kind = godwit.FailureTLSVerify
	case errors.As(err, &dial) && dial.tls, handshakeError(err):
		f.Kind = godwit.FailureTLSHandshake
	case errors.As(err, &dns):
		f.Kind = godwit.FailureDNS
		f.Detail = unresolved(dns)
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Kind = godwit.FailureRefused
	}
	return f
}

// unresolved describes a DNS failure in our own words: the error names our name server and address.
func unresolved(err *net.DNSError) string {
	switch {
	case err.IsNotFound:
		return "no such host"
	case err.IsTimeout:
		return "name servers did not answer in time"
	}
	return "name servers failed to answer"
}

// unverified reports whether the certificate is the reason.
func unverified(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		hostname     x509.HostnameError
		authority    x509.UnknownAuthorityError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &hostname) || errors.As(err, &authority) || errors.As(err, &invalid)
}

// handshakeError recognises errors of the TLS handshake that net/http makes behind a proxy.
func handshakeError(err error) bool {
	var record tls.RecordHeaderError
	return alerted(err) || errors.As(err, &record)
}

// alerted reports whether the peer ended TLS with an alert. crypto/tls does not export the alert's type, but names the
// operation.
func alerted(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// An h2StreamError has the fields of net/http's own type for a reset stream. That type is not exported, but fills in any
// struct of this shape by errors.As.
type h2StreamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (h2StreamError) Error() string { return "stream reset" }

const h2ProtocolError = 1

// failedStream is for HTTP/2 without a response header. net/http's other errors stand for GOAWAY, a connection error, or a
// reset after which it would have resent the request; they cannot be distinguished.
func failedStream(err error) *godwit.Failure {
	f := &godwit.Failure{Kind: godwit.FailureStreamReset, Sent: true, Detail: "stream reset or connection given up by the receiver"}
	var stream h2StreamError
	switch {
	case errors.As(err, &stream):
		if stream.Code == h2ProtocolError {
			// net/http hides the peer's own PROTOCOL_ERROR in another error, so this one is ours.
			f.Kind, f.Detail = godwit.FailureProtocol, "response header is not valid or too large"
		}
	case cut(err):
		f.Kind, f.Detail = godwit.FailureReset, "connection closed before a response"
	}
	return f
}

// failedInBody is for a response whose header had arrived.
func failedInBody(ctx context.Context, err error, http1 bool) *godwit.Failure {
	if ctx.Err() != nil {
		return contextFailure(ctx, true)
	}
	f := &godwit.Failure{Kind: godwit.FailureTruncated, Sent: true, Detail: "connection closed within the response body"}
	var stream h2StreamError
	switch {
	case errors.As(err, &stream):
		f.Kind, f.Detail = godwit.FailureStreamReset, "stream reset within the response body"
	case cut(err):
	case !http1:
		f.Kind, f.Detail = godwit.FailureStreamReset, "stream or connection given up within the response body"
	default:
		f.Kind, f.Detail = godwit.FailureProtocol, "response body is not validly framed"
	}
	return f
}

// switchedUnasked is for 101: the sender never asks to switch protocols, so 101 does not answer a delivery (EDS-STA-1xx).
func switchedUnasked() *godwit.Failure {
	return &godwit.Failure{Kind: godwit.FailureProtocol, Sent: true, Detail: "receiver switched protocols unasked"}
}

// cut reports whether the connection ended or failed, as opposed to carrying something unreadable.
func cut(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &op)
}

// detail is an error's text in a form that can be stored and shown: one line of limited length, as it may quote the peer.
func detail(err error) string {
	const limit = 200
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, err.Error())
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
