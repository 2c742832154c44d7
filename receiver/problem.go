package receiver

import (
	"encoding/json"
	"net/http"
)

// A ProblemCode names an error that senders see. The values are stable: they are the fragment of a problem's type.
type ProblemCode string

// The codes.
const (
	CodeMethod           ProblemCode = "method-not-allowed"
	CodeTooLarge         ProblemCode = "too-large"
	CodeTooEarly         ProblemCode = "too-early"
	CodeTLSRequired      ProblemCode = "tls-required"
	CodeUnauthenticated  ProblemCode = "unauthenticated"
	CodeKeyMissing       ProblemCode = "key-missing"
	CodeKeyMalformed     ProblemCode = "key-malformed"
	CodeKeyLength        ProblemCode = "key-length"
	CodePayloadMalformed ProblemCode = "payload-malformed"
	CodePayloadInvalid   ProblemCode = "payload-invalid"
	CodeInProgress       ProblemCode = "in-progress"
	CodeKeyReused        ProblemCode = "key-reused"
	CodeUnavailable      ProblemCode = "unavailable"
	CodeRejected         ProblemCode = "rejected"
	CodeRetryAfter       ProblemCode = "retry-after"
	CodeInternal         ProblemCode = "internal"
)

var titles = map[ProblemCode]string{
	CodeMethod:           "Method not allowed",
	CodeTooLarge:         "Payload too large",
	CodeTooEarly:         "Too early",
	CodeTLSRequired:      "TLS required",
	CodeUnauthenticated:  "Not authenticated",
	CodeKeyMissing:       "Key is missing",
	CodeKeyMalformed:     "Key is malformed",
	CodeKeyLength:        "Key has the wrong length",
	CodePayloadMalformed: "Payload is malformed",
	CodePayloadInvalid:   "Payload is not valid",
	CodeInProgress:       "A request with this key is in progress",
	CodeKeyReused:        "Key was used with another payload",
	CodeUnavailable:      "Unavailable",
	CodeRejected:         "Rejected",
	CodeRetryAfter:       "Try again later",
	CodeInternal:         "Internal error",
}

// problem is an error as problem details (RFC 9457). The type is the documentation page (IKH K-8).
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// problem makes the answer to a refused request. Extra are pairs of header fields and values.
func (r *Receiver) problem(status int, code ProblemCode, detail string, extra ...string) Answer {
	header := make(http.Header, 4)
	header["Link"] = []string{`<` + r.docsURL + `>; rel="describedby"; type="text/html"`}
	for i := 0; i+1 < len(extra); i += 2 {
		header[extra[i]] = []string{extra[i+1]}
	}
	var value any = struct {
		Error string `json:"error"`
	}{detail}
	header["Content-Type"] = []string{"application/json"}
	if r.profile.Problems {
		value = problem{r.docsURL + "#" + string(code), titles[code], status, detail}
		header["Content-Type"] = []string{"application/problem+json"}
	}
	body, err := json.Marshal(value)
	if err != nil { // invalid UTF-8 is replaced, so encoding cannot fail
		body = nil
	}
	return Answer{status, header, body}
}
