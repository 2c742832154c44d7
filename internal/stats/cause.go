package stats

import (
	"cmp"
	"slices"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Cause is the reason of a failed attempt: what kind of failure it was, and the status code if the receiver answered with one.
type Cause struct {
	Kind   CauseKind
	Status int // 0: no status
}

// CauseKind is stored as a number: a new kind gets the next one.
type CauseKind uint8

// The kinds.
const (
	CauseOther CauseKind = iota
	CauseDNS
	CauseRefused
	CauseConnect
	CauseReset
	CauseTLS
	CauseCertificate
	CauseTimeout
	CauseTruncated
	CauseProtocol
	CauseAddress
	CauseRedirect
	CauseCredential
	CauseRequest
	CauseServerError
	CauseClientError
	CauseResponse
	causeKinds
)

var causeNames = [causeKinds]string{
	"other", "dns", "refused", "connect", "reset", "tls", "certificate", "timeout", "truncated", "protocol", "address", "redirect", "credential",
	"request", "server-error", "client-error", "response",
}

// String returns the name that the API shows; it is stable.
func (k CauseKind) String() string { return causeNames[min(k, causeKinds-1)] }

// CauseNames lists the names of all kinds.
func CauseNames() []string { return causeNames[:] }

var causeOfFailure = map[godwit.Reason]CauseKind{
	godwit.Reason(godwit.FailureDNS):               CauseDNS,
	godwit.Reason(godwit.FailureRefused):           CauseRefused,
	godwit.Reason(godwit.FailureConnect):           CauseConnect,
	godwit.Reason(godwit.FailureReset):             CauseReset,
	godwit.Reason(godwit.FailureStreamReset):       CauseReset,
	godwit.Reason(godwit.FailureTLSHandshake):      CauseTLS,
	godwit.Reason(godwit.FailureTLSVerify):         CauseCertificate,
	godwit.Reason(godwit.FailureTimeout):           CauseTimeout,
	godwit.Reason(godwit.FailureTruncated):         CauseTruncated,
	godwit.Reason(godwit.FailureProtocol):          CauseProtocol,
	godwit.Reason(godwit.FailureBlockedAddress):    CauseAddress,
	godwit.Reason(godwit.FailureRedirectForbidden): CauseRedirect,
	godwit.Reason(godwit.FailureRedirectLimit):     CauseRedirect,
	godwit.Reason(godwit.FailureRedirectInvalid):   CauseRedirect,
	godwit.Reason(godwit.FailureCredential):        CauseCredential,
	godwit.Reason(godwit.FailureInvalidRequest):    CauseRequest,
	godwit.ReasonMoveRefused:                       CauseRedirect,
}

// CauseOf returns the cause of a failed attempt.
func CauseOf(a *godwit.Attempt) Cause {
	if kind, ok := causeOfFailure[a.Verdict.Reason]; ok {
		return Cause{Kind: kind, Status: a.Status}
	}
	switch s := a.Status; {
	case s >= 500:
		return Cause{CauseServerError, s}
	case s >= 400:
		return Cause{CauseClientError, s}
	case s >= 300:
		return Cause{CauseRedirect, s}
	case s >= 200:
		return Cause{CauseResponse, s}
	}
	return Cause{Status: a.Status}
}

// Seen is how often a cause was seen, and when: seconds since 1970.
type Seen struct {
	Count       int64
	First, Last int64
}

func (s *Seen) add(o Seen) {
	if s.Count == 0 || o.First < s.First {
		s.First = o.First
	}
	s.Last = max(s.Last, o.Last)
	s.Count += o.Count
}

// A CauseSeen is a cause with its count.
type CauseSeen struct {
	Cause
	Seen
}

// Causes are sorted by kind and status.
type Causes []CauseSeen

// Add adds a cause.
func (c *Causes) Add(cause Cause, seen Seen) {
	at, found := slices.BinarySearchFunc(*c, cause, func(s CauseSeen, o Cause) int {
		return cmp.Or(cmp.Compare(s.Kind, o.Kind), cmp.Compare(s.Status, o.Status))
	})
	if !found {
		*c = slices.Insert(*c, at, CauseSeen{Cause: cause})
	}
	(*c)[at].add(seen)
}

// merge adds causes.
func (c *Causes) merge(o Causes) {
	for _, s := range o {
		c.Add(s.Cause, s.Seen)
	}
}

// append encodes the causes. Times are relative to the beginning of their slot.
func (c Causes) append(b []byte, begin int64) []byte {
	b = appendNumber(b, int64(len(c)))
	for _, s := range c {
		b = append(b, byte(s.Kind))
		for _, n := range [...]int64{int64(s.Status), s.Count, s.First - begin, s.Last - s.First} {
			b = appendNumber(b, n)
		}
	}
	return b
}

// causes reads causes, and adds them to c unless that is nil.
func (r *reader) causes(c *Causes, begin int64) {
	for n := r.number(); n > 0 && !r.bad; n-- {
		kind := CauseKind(r.byte())
		status, count := r.number(), r.number()
		first := begin + r.number()
		last := first + r.number()
		if kind >= causeKinds {
			kind = CauseOther // of a later release
		}
		if c != nil && !r.bad {
			c.Add(Cause{kind, int(status)}, Seen{count, first, last})
		}
	}
}

// advice says what to do about a kind of failure.
var advice = [causeKinds]string{
	CauseOther:       "Open a failed delivery and read the detail of its last attempt.",
	CauseDNS:         "The host name of the URL does not resolve. Check it for a typing error, and the DNS records of the domain.",
	CauseRefused:     "Nothing listens at that address and port. Check that the receiver runs, and its port and firewall.",
	CauseConnect:     "No connection came about. Check the route, the firewall and the proxy between here and the receiver.",
	CauseReset:       "The receiver, or a proxy before it, closed the connection before it answered. Look into its log for crashes and limits at that time.",
	CauseTLS:         "The TLS handshake failed. Check which protocol versions and ciphers the receiver offers, and whether it asks for a client certificate.",
	CauseCertificate: "The receiver's certificate is not valid: expired, for another name, or of an unknown authority. Renew it, and serve the whole chain.",
	CauseTimeout:     "The receiver did not answer in time. Let it answer first and work afterwards, or raise the endpoint's timeout.",
	CauseTruncated:   "The receiver began to answer and did not finish. Look for crashes, and for proxies that cut answers off.",
	CauseProtocol:    "The answer is not HTTP as it should be. Check that URL and port belong to a web server.",
	CauseAddress:     "The URL leads to an address that this server may not connect to. Use a public address, or have the operator allow the range.",
	CauseRedirect:    "The receiver redirects to another URL, which is not followed. Set the endpoint's URL to the final one.",
	CauseCredential:  "The credential of the endpoint could not be obtained. Check its token URL, client and secret.",
	CauseRequest:     "The request cannot be sent as it is set up. Check the endpoint's URL, method and headers.",
	CauseServerError: "The receiver failed by itself. Look into its log at that time.",
	CauseClientError: "The receiver refused the request. Its answer in the attempt says why.",
	CauseResponse:    "The receiver's answer does not count as an acknowledgement. It should answer 200 or 204.",
}

// adviceOfStatus is more exact than the advice of a kind.
var adviceOfStatus = map[int]string{
	400: "The receiver does not understand the request. Compare what was sent with what it expects, and the profile of the endpoint.",
	401: "The receiver wants other credentials, or rejects the signature. Check the endpoint's credential, and the secret that the receiver verifies with.",
	403: "The receiver forbids the request. Check its allow list, its firewall and the endpoint's credential.",
	404: "The receiver does not know this path. Check the endpoint's URL.",
	405: "The receiver does not accept this method at that path. Check the endpoint's URL.",
	408: "The receiver gave up waiting for the request. It is overloaded, or a proxy before it is.",
	409: "The receiver is still busy with an earlier attempt of the same event. Attempts go on by themselves.",
	410: "The receiver says that the endpoint is gone. Delete it, or give it its new URL.",
	413: "The payload is too large for the receiver. Raise its limit, or that of the proxy before it.",
	415: "The receiver does not take this content type.",
	429: "The receiver wants fewer requests. Set a rate limit for the endpoint.",
	502: "A proxy reaches no application behind it. Check that the receiver's application runs.",
	503: "The receiver is overloaded or down for maintenance. Attempts go on by themselves.",
	504: "A proxy waited too long for the application behind it. Let the receiver answer first and work afterwards.",
}

// Advice says what to do about a cause.
func (c Cause) Advice() string {
	if c.Kind == CauseClientError || c.Kind == CauseServerError {
		if text, ok := adviceOfStatus[c.Status]; ok {
			return text
		}
	}
	return advice[min(c.Kind, causeKinds-1)]
}
