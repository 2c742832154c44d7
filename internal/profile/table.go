package profile

import (
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A statusTable maps every status code to an outcome.
type statusTable func(code int) godwit.Outcome

// classifyBy reads an exchange by a dialect's table. Every failure to get a complete response may be retried: these dialects do
// not distinguish them (OJS-DLV-5, OJS-DLV-11, CCW-RSP-3, CCW-RTY-3).
func classifyBy(table statusTable, x *godwit.Exchange, p *godwit.Policy) godwit.Verdict {
	if x.Failure != nil {
		v := godwit.Verdict{
			Outcome: godwit.Transient, Class: godwit.ClassTransport, Reason: godwit.Reason(x.Failure.Kind), ReceiverUnknown: x.Failure.Sent,
		}
		switch x.Failure.Kind {
		case godwit.FailureRedirectForbidden, godwit.FailureRedirectLimit, godwit.FailureRedirectInvalid:
			v.Class = godwit.ClassApplication
		}
		return v
	}
	v := godwit.Verdict{Outcome: table(x.Status), Reason: plainReason(x.Status)}
	if x.Status == http.StatusMultiStatus && p.MultiStatus {
		if v.Outcome = multiStatus(x, p, table); v.Outcome != godwit.Accepted {
			v.Reason = godwit.ReasonMultiElement
		}
	}
	if agreed, ok := p.Statuses[x.Status]; ok {
		v.Outcome, v.Reason = agreed, godwit.ReasonAgreement
	}
	if v.Outcome == godwit.Accepted {
		return v
	}
	v.Class = godwit.ClassApplication
	v.ReceiverUnknown = x.Status == http.StatusRequestTimeout || x.Status == http.StatusGatewayTimeout
	v.Review = v.Outcome == godwit.Terminal && v.Reason == godwit.ReasonLegal
	v.Problem = problemDetails(x)
	return v
}

// plainReason is the reason code of an outcome that the status code alone decides.
func plainReason(code int) godwit.Reason {
	switch code {
	case http.StatusUnauthorized:
		return godwit.ReasonUnauthorized
	case http.StatusNotFound:
		return godwit.ReasonNotFound
	case http.StatusGone:
		return godwit.ReasonGone
	case http.StatusMisdirectedRequest:
		return godwit.ReasonMisdirected
	case http.StatusUnavailableForLegalReasons:
		return godwit.ReasonLegal
	}
	switch {
	case code >= 200 && code <= 299:
		return godwit.ReasonAccepted
	case code >= 300 && code <= 399:
		return godwit.ReasonRedirect
	}
	return godwit.ReasonStatus
}

// rejecting is the table that the Open Job Spec and CYBERCUBE share: 2xx is accepted, 4xx other than 429 is not retried, and
// everything else is, invalid status codes included (OJS-DLV-2..9, CCW-RSP-1..11).
func rejecting(code int) godwit.Outcome {
	switch {
	case code >= 200 && code <= 299:
		return godwit.Accepted
	case code >= 400 && code <= 499 && code != http.StatusTooManyRequests:
		return godwit.Terminal
	}
	return godwit.Transient
}

// gone reports whether the receiver says that the endpoint no longer exists, and no agreement reads that otherwise.
func gone(x *godwit.Exchange, v *godwit.Verdict) bool {
	return x.Failure == nil && x.Status == http.StatusGone && v.Reason != godwit.ReasonAgreement
}

// redirects are all redirects that can be followed with the same method and body (OJS-DLV-4, CCW-RSP-3).
func redirects() []int {
	return []int{
		http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
	}
}

// seconds lists delays.
func seconds(delays ...int) []time.Duration {
	list := make([]time.Duration, len(delays))
	for i, d := range delays {
		list[i] = time.Duration(d) * time.Second
	}
	return list
}
