package profile

import (
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// classifyEDS reads an exchange by the draft's tables: transport failures first, then the final status code. It reads a body
// only for a 207 under agreement.
func classifyEDS(x *godwit.Exchange, p *godwit.Policy, now time.Time) godwit.Verdict {
	v := godwit.Verdict{SunsetAt: sunset(x.Header)}
	switch {
	case x.Failure != nil:
		classifyFailure(&v, x.Failure)
	case x.Status >= 200 && x.Status <= 299:
		classifySuccess(&v, x, p)
	default:
		classifyStatus(&v, x, p)
	}
	if v.Outcome == godwit.Transient {
		v.RetryAfter = retryAfter(x.Header, now)
	}
	if v.Outcome != godwit.Accepted {
		v.Problem = problemDetails(x)
	}
	return v
}

// classifyFailure: an attempt without a complete response is transient (EDS-NET-1, EDS-NET-2), except where the sender itself
// refuses the target: a retry cannot change that (EDS T-8, T-11).
func classifyFailure(v *godwit.Verdict, f *godwit.Failure) {
	v.Outcome, v.Class, v.Reason = godwit.Transient, godwit.ClassTransport, godwit.Reason(f.Kind)
	v.ReceiverUnknown = f.Sent
	switch f.Kind {
	case godwit.FailureBlockedAddress:
		v.Outcome, v.Review = godwit.Terminal, true
	case godwit.FailureRedirectForbidden:
		v.Outcome, v.Class = godwit.Terminal, godwit.ClassApplication
	case godwit.FailureRedirectLimit, godwit.FailureRedirectInvalid:
		v.Class = godwit.ClassApplication
	}
}

func classifySuccess(v *godwit.Verdict, x *godwit.Exchange, p *godwit.Policy) {
	v.Outcome, v.Reason = godwit.Accepted, godwit.ReasonAccepted
	switch {
	case x.Status == http.StatusMultiStatus && !p.MultiStatus:
		v.Outcome, v.Reason, v.Review = godwit.Terminal, godwit.ReasonMultiStatus, true
	case x.Status == http.StatusMultiStatus:
		if v.Outcome = multiStatus(x, p, edsTable); v.Outcome != godwit.Accepted {
			v.Reason = godwit.ReasonMultiElement
		}
	default:
		if agreed, ok := p.Statuses[x.Status]; ok {
			v.Outcome, v.Reason = agreed, godwit.ReasonAgreement
		}
	}
	if v.Outcome != godwit.Accepted {
		v.Class = godwit.ClassApplication
	}
}

func classifyStatus(v *godwit.Verdict, x *godwit.Exchange, p *godwit.Policy) {
	v.Class = godwit.ClassApplication
	v.Outcome, v.Reason = statusOutcome(x.Status)
	switch x.Status {
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		v.ReceiverUnknown = true
	case http.StatusUnauthorized:
		v.RefreshAndRetry = p.RefreshOn401
	case http.StatusGone:
		v.DisableEndpoint = true
	case http.StatusUnavailableForLegalReasons:
		v.Review = true
	case http.StatusPermanentRedirect:
		// The engine checks the target and turns a refusal into a terminal outcome.
		v.MoveTo = location(x)
		if v.MoveTo == "" {
			v.Outcome, v.Reason = godwit.Terminal, godwit.ReasonMoveRefused
		}
	}
	if agreed, ok := p.Statuses[x.Status]; ok {
		v.Outcome, v.Reason = agreed, godwit.ReasonAgreement
		v.MoveTo, v.RefreshAndRetry, v.DisableEndpoint = "", false, false
		if agreed == godwit.Accepted {
			v.Class = godwit.ClassNone
		}
	}
}

func edsTable(code int) godwit.Outcome { outcome, _ := statusOutcome(code); return outcome }

// statusOutcome is the draft's status table for everything that is not 2xx.
func statusOutcome(code int) (godwit.Outcome, godwit.Reason) {
	switch code {
	case http.StatusConflict:
		return godwit.Transient, godwit.ReasonInProgress // EDS T-2: the key's own "still running", not a refusal
	case http.StatusMisdirectedRequest:
		return godwit.Transient, godwit.ReasonMisdirected
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return godwit.Transient, godwit.ReasonStatus
	case http.StatusUnauthorized:
		return godwit.Terminal, godwit.ReasonUnauthorized
	case http.StatusNotFound:
		return godwit.Terminal, godwit.ReasonNotFound
	case http.StatusGone:
		return godwit.Terminal, godwit.ReasonGone
	case http.StatusUnavailableForLegalReasons:
		return godwit.Terminal, godwit.ReasonLegal
	case http.StatusPermanentRedirect:
		return godwit.Transient, godwit.ReasonMoved
	}
	switch {
	case code >= 300 && code <= 399:
		return godwit.Terminal, godwit.ReasonRedirect
	case code >= 400 && code <= 499:
		return godwit.Terminal, godwit.ReasonStatus
	}
	return godwit.Transient, godwit.ReasonStatus // 5xx, and invalid status codes (EDS-STA-INV)
}
