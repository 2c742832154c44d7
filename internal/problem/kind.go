package problem

import (
	"fmt"
	"net/http"
	"slices"
)

// A Kind is a class of failures that clients can distinguish. It is itself an error, so a handler can return it directly if
// there is nothing to add.
type Kind struct {
	Code   string // stable; clients branch on it
	Status int
	Title  string
	Doc    string // one sentence for the documentation: when it occurs and what to do
	Page   string // documentation page that explains the kind

	retryAfter string
}

// The pages that explain problems.
const (
	PageProblems    = "/docs/problems"
	PageIdempotency = "/docs/idempotency"
)

var kinds []*Kind

func define(status int, code, title, doc string) *Kind {
	k := &Kind{Code: code, Status: status, Title: title, Doc: doc, Page: PageProblems}
	kinds = append(kinds, k)
	return k
}

func defineIdempotency(status int, code, title, doc string) *Kind {
	k := define(status, code, title, doc)
	k.Page = PageIdempotency
	return k
}

func (k *Kind) retry(seconds string) *Kind {
	k.retryAfter = seconds
	return k
}

// Kinds lists every kind in the order of definition.
func Kinds() []*Kind { return slices.Clone(kinds) }

// The kinds.
var (
	MalformedJSON = define(http.StatusBadRequest, "malformed-json", "The body is not valid JSON",
		"The request body cannot be read as JSON. Nothing was done; correct the syntax.")
	InvalidRequest = define(http.StatusBadRequest, "invalid-request", "The request does not fit its schema",
		"A parameter or member is missing, has the wrong type, is out of range, or is not known. Nothing was done; errors names each field.")
	Invalid = define(http.StatusUnprocessableEntity, "validation-failed", "The request cannot be accepted as it is",
		"The request is well formed, yet a value in it is not acceptable. Nothing was done; errors names each field.")
	Unauthorized = define(http.StatusUnauthorized, "unauthorized", "Authentication is required",
		"No API key was sent, or it is unknown, expired or revoked. Send Authorization: Bearer <key>.")
	Forbidden = define(http.StatusForbidden, "forbidden", "The API key may not do this",
		"The API key lacks the scope that the operation needs; the detail names it.")
	CrossSite = define(http.StatusForbidden, "cross-site-request", "The request comes from another site",
		"A request that is authenticated by a cookie must come from a page of this server: Sec-Fetch-Site must be same-origin or, from a browser that does not send it, Origin must be this server's. Programs use an API key.")
	CodeUsed = define(http.StatusGone, "sign-in-code-used", "The link was used already",
		"The code of a sign-in link or portal link is good for one sign-in. Ask for a new link. If you have not used it, another person has: end that session.")
	CodeExpired = define(http.StatusGone, "sign-in-code-expired", "The link has expired",
		"The code of a sign-in link or portal link is good for a short time. Ask for a new link.")
	NotFound = define(http.StatusNotFound, "not-found", "Not found",
		"There is no such thing, or it belongs to another tenant.")
	MethodNotAllowed = define(http.StatusMethodNotAllowed, "method-not-allowed", "Method not allowed",
		"The resource exists but does not take this method; Allow lists those it takes.")
	RequestTimeout = define(http.StatusRequestTimeout, "request-timeout", "The request did not arrive in time",
		"The body did not arrive within the time allowed. Nothing was done; send it again.")
	Conflict = define(http.StatusConflict, "conflict", "The state does not allow this",
		"The thing is not in a state that allows the change, or it changed under way. Read it again and decide anew.")
	PreconditionFailed = define(http.StatusPreconditionFailed, "precondition-failed", "The object is not as the request expects",
		"If-Match names another version than the object has, or If-None-Match is * and the object exists. Nothing was done; read it again and decide anew.")
	LimitReached = define(http.StatusConflict, "limit-reached", "A limit was reached",
		"The tenant has as many of these as it may have. Delete some, or ask the operator for more.")
	TooLarge = define(http.StatusRequestEntityTooLarge, "body-too-large", "The body is too large",
		"The body is over the limit that the detail names. Nothing was stored.")
	UnsupportedMediaType = define(http.StatusUnsupportedMediaType, "unsupported-media-type", "Unsupported media type",
		"Content-Type is missing, malformed, or not one that the operation reads; or Content-Encoding was used.")
	TenantLimit = define(http.StatusForbidden, "tenant-limit", "A limit of the tenant was reached",
		"The platform has set a limit on the tenant; the detail names it. Use less, or ask the platform for more.")
	TooManyRequests = define(http.StatusTooManyRequests, "too-many-requests", "Too many requests",
		"The tenant makes these faster than it may. Wait for Retry-After.").retry("1")
	ConfirmationInvalid = define(http.StatusForbidden, "confirmation-invalid", "The confirmation is not for this request",
		"Godwit-Confirmation or Godwit-Command is missing, wrong, or belongs to another request. Nothing was done; ask for a confirmation by sending the request without them.")
	ConfirmationExpired = define(http.StatusGone, "confirmation-expired", "The confirmation came too late",
		"Nothing was done. Send the request without Godwit-Confirmation to get another token.")
	StepUpRequired = define(http.StatusForbidden, "step-up-required", "A second API key has to approve",
		"The operation also needs Godwit-Step-Up: the token that another API key got at the step_up_url of the first answer. Nothing was done.")
	NotAuthentic = define(http.StatusUnauthorized, "not-authentic", "The delivery is not authentic",
		"The signature or credential that the source demands is missing, wrong, too old, or was seen before. Nothing was stored.")
	TooEarly = define(http.StatusTooEarly, "too-early", "Too early",
		"The request came as TLS early data, which can be replayed by others. Send it again after the handshake.")
	RelayLoop = define(http.StatusUnprocessableEntity, "relay-loop", "The delivery has been here before",
		"Godwit-Via names this source, or too many: what is sent on from here comes back. Take the endpoint out that closes the circle.")
	DownstreamRejected = define(http.StatusUnprocessableEntity, "downstream-rejected", "An endpoint refused the event for good",
		"The event was passed through, and what is left of its endpoints refused it: downstream tells how. Sending it again does not help.")
	DownstreamFailed = define(http.StatusBadGateway, "downstream-failed", "An endpoint did not accept the event",
		"The event was passed through, and not every endpoint has accepted it yet. Deliver it again: it goes to those that are left.")
	NoDownstream = define(http.StatusBadGateway, "no-downstream", "Nobody receives the event",
		"The source passes events through, and no endpoint is for events of this type now. Deliver it again later.")
	DownstreamTimeout = define(http.StatusGatewayTimeout, "downstream-timeout", "An endpoint did not answer in time",
		"The event was passed through, and the outcome at an endpoint is not known yet. Deliver it again: it goes to those that are left.")
	Internal = define(http.StatusInternalServerError, "internal", "Internal error",
		"Something failed on our side. The log has the details under the request id.")
	Unavailable = define(http.StatusServiceUnavailable, "unavailable", "Temporarily unavailable",
		"The store cannot be written now, or the server is stopping. Nothing was acknowledged; repeat after Retry-After, best with the same Idempotency-Key.").retry("2")

	KeyMissing = defineIdempotency(http.StatusBadRequest, "idempotency-key-missing", "Idempotency-Key is missing",
		"The operation is documented to need an Idempotency-Key header and there was none. A key in query, body or trailer, or under another header name, does not count.")
	KeyMalformed = defineIdempotency(http.StatusBadRequest, "idempotency-key-malformed", "Idempotency-Key is malformed",
		"The header is not a structured-field string: printable ASCII between double quotes.")
	KeyTooShort = defineIdempotency(http.StatusBadRequest, "idempotency-key-too-short", "Idempotency-Key is too short",
		"The key has fewer characters than the published minimum, so that it could be guessed or collide.")
	KeyTooLong = defineIdempotency(http.StatusBadRequest, "idempotency-key-too-long", "Idempotency-Key is too long",
		"The key has more characters than the published maximum.")
	KeyRepeated = defineIdempotency(http.StatusBadRequest, "idempotency-key-repeated", "More than one Idempotency-Key",
		"The request has several Idempotency-Key field lines. Send exactly one.")
	KeyInProgress = defineIdempotency(http.StatusConflict, "idempotency-in-progress", "The first request is still in progress",
		"A request with this key is being processed. Repeat the same request after Retry-After; it needs no correction.").retry("1")
	KeyReused = defineIdempotency(http.StatusUnprocessableEntity, "idempotency-key-reused", "Idempotency-Key was used with another request",
		"This key came with a different payload before. Use a fresh key for a different request; nothing was done.")
)

func (k *Kind) Error() string { return k.Code }

// With returns a problem of this kind with a detail for people.
func (k *Kind) With(format string, args ...any) *Problem {
	detail := format
	if len(args) > 0 {
		detail = fmt.Sprintf(format, args...)
	}
	return &Problem{Title: k.Title, Status: k.Status, Code: k.Code, Detail: detail, kind: k}
}

// In returns a problem of this kind about one field.
func (k *Kind) In(field, format string, args ...any) *Problem {
	p := k.With(format, args...)
	p.Errors = []Field{{Field: field, Detail: p.Detail}}
	p.Detail = field + ": " + p.Detail
	return p
}
