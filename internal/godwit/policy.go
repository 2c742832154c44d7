package godwit

import (
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"time"
)

// A Policy is how an endpoint is delivered to. A profile gives the defaults; an endpoint may override single members.
type Policy struct {
	Base       time.Duration   // window of the first retry's delay; doubles with every further one
	Cap        time.Duration   // widest window
	Schedule   []time.Duration // fixed delays in place of Base and Cap; jitter only lengthens them (decision 3)
	MaxRetries int
	MaxElapsed time.Duration // from a run's first attempt

	Timeout     time.Duration // one attempt, from dialling to the last byte of the response
	Concurrency int           // attempts in flight to the endpoint
	Rate        float64       // attempts a second; 0 is no limit
	Burst       int           // attempts at once under Rate
	HoldScope   string        // whom a Retry-After holds: "endpoint" or "event"

	DisableAfter  int           // consecutive terminal outcomes over distinct events; 0 never
	CircuitAfter  int           // consecutive failures that open the circuit; 0 never
	ProbeInterval time.Duration // least time between probes of an open circuit; doubles up to ten times it
	MaxHops       int           // redirects followed inside one attempt

	Statuses     map[int]Outcome // agreed readings of status codes (EDS-AGR-2)
	MultiStatus  bool            // 207 bodies are read by agreement (EDS-STA-207b)
	RefreshOn401 bool            // a 401 gets one more attempt at once, newly signed and with a renewed token (EDS-STA-401b, T-26)
	DedupWindow  time.Duration   // the receiver's; retries end before it does
}

// The values of HoldScope.
const (
	HoldEndpoint = "endpoint"
	HoldEvent    = "event"
)

// PolicyOverrides are an endpoint's listed deviations from its profile. Nil members follow the profile.
type PolicyOverrides struct {
	BaseSeconds        *float64          `json:"base_seconds,omitempty"`
	CapSeconds         *float64          `json:"cap_seconds,omitempty"`
	MaxRetries         *int              `json:"max_retries,omitempty"`
	MaxElapsedSeconds  *float64          `json:"max_elapsed_seconds,omitempty"`
	TimeoutSeconds     *float64          `json:"timeout_seconds,omitempty"`
	Concurrency        *int              `json:"concurrency,omitempty"`
	RatePerSecond      *float64          `json:"rate_per_second,omitempty"`
	Burst              *int              `json:"burst,omitempty"`
	HoldScope          *string           `json:"hold_scope,omitempty"`
	DisableAfter       *int              `json:"disable_after,omitempty"`
	CircuitAfter       *int              `json:"circuit_after,omitempty"`
	DedupWindowSeconds *float64          `json:"dedup_window_seconds,omitempty"`
	Statuses           map[string]string `json:"statuses,omitempty"` // "404": "transient"
	MultiStatus        *bool             `json:"multi_status,omitempty"`
	RefreshOn401       *bool             `json:"refresh_on_401,omitempty"` // false where a credential cannot be renewed: 401 is terminal at once
	Agreement          *Agreement        `json:"agreement,omitempty"`
}

// An Agreement is what makes another reading of status codes, or PUT, valid: written down and open to the operators of
// both parties (EDS-AGR-3). The API shows it to both.
type Agreement struct {
	Document      string `json:"document"`        // where it is written
	VisibleToBoth bool   `json:"visible_to_both"` // operators of both parties can read it
}

// Valid reports whether the agreement can carry an override.
func (a *Agreement) Valid() bool {
	if a == nil || !a.VisibleToBoth {
		return false
	}
	u, err := url.Parse(a.Document)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// A FieldError names the member that is wrong and says what to do about it.
type FieldError struct {
	Field  string
	Detail string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Detail }

func fieldErr(field, format string, args ...any) *FieldError {
	return &FieldError{Field: field, Detail: fmt.Sprintf(format, args...)}
}

// Apply lays the overrides over the profile's defaults and refuses what no conforming sender may do: retrying without
// bound, retrying past the receiver's dedup window, reading 2xx or credential failures against the document.
func (o *PolicyOverrides) Apply(p Policy) (Policy, *FieldError) {
	for _, err := range []*FieldError{
		setSeconds(&p.Base, o.BaseSeconds, "policy.base_seconds", 0.001, 3600),
		setSeconds(&p.Cap, o.CapSeconds, "policy.cap_seconds", 0.001, 86400),
		setSeconds(&p.MaxElapsed, o.MaxElapsedSeconds, "policy.max_elapsed_seconds", 1, 30*86400),
		setSeconds(&p.Timeout, o.TimeoutSeconds, "policy.timeout_seconds", 0.1, 300),
		setSeconds(&p.DedupWindow, o.DedupWindowSeconds, "policy.dedup_window_seconds", 60, 90*86400),
		setInt(&p.MaxRetries, o.MaxRetries, "policy.max_retries", 0, 200),
		setInt(&p.Concurrency, o.Concurrency, "policy.concurrency", 1, 1024),
		setInt(&p.Burst, o.Burst, "policy.burst", 1, 100000),
		setInt(&p.DisableAfter, o.DisableAfter, "policy.disable_after", 0, 100000),
		setInt(&p.CircuitAfter, o.CircuitAfter, "policy.circuit_after", 0, 100000),
	} {
		if err != nil {
			return p, err
		}
	}
	if o.RatePerSecond != nil {
		if !(*o.RatePerSecond >= 0.001 && *o.RatePerSecond <= 100000) {
			return p, fieldErr("policy.rate_per_second", "must be between 0.001 and 100000; leave it out for no limit")
		}
		p.Rate = *o.RatePerSecond
	}
	if o.HoldScope != nil {
		if *o.HoldScope != HoldEndpoint && *o.HoldScope != HoldEvent {
			return p, fieldErr("policy.hold_scope", "must be %q or %q", HoldEndpoint, HoldEvent)
		}
		p.HoldScope = *o.HoldScope
	}
	if (o.BaseSeconds != nil || o.CapSeconds != nil) && p.Base > p.Cap {
		return p, fieldErr("policy.cap_seconds", "must not be less than base_seconds")
	}
	if p.MaxElapsed >= p.DedupWindow {
		return p, fieldErr("policy.max_elapsed_seconds",
			"must stay below the receiver's deduplication window of %g s, or a late retry is processed twice; set dedup_window_seconds if the receiver's is longer",
			p.DedupWindow.Seconds())
	}
	if o.MultiStatus != nil {
		if *o.MultiStatus && !o.Agreement.Valid() {
			return p, errNoAgreement("policy.multi_status")
		}
		p.MultiStatus = *o.MultiStatus
	}
	if o.RefreshOn401 != nil {
		p.RefreshOn401 = *o.RefreshOn401
	}
	return o.applyStatuses(p)
}

func errNoAgreement(field string) *FieldError {
	return fieldErr(field, "needs policy.agreement with document (a URL where it is written) and visible_to_both true")
}

func (o *PolicyOverrides) applyStatuses(p Policy) (Policy, *FieldError) {
	if len(o.Statuses) == 0 {
		return p, nil
	}
	p.Statuses = maps.Clone(p.Statuses)
	if p.Statuses == nil {
		p.Statuses = map[int]Outcome{}
	}
	for text, outcome := range o.Statuses {
		field := "policy.statuses." + text
		code, err := strconv.Atoi(text)
		if err != nil || code < 200 || code > 599 || strconv.Itoa(code) != text {
			return p, fieldErr(field, "must be a status code from 200 to 599")
		}
		switch Outcome(outcome) {
		case Accepted, Transient, Terminal:
		default:
			return p, fieldErr(field, "must be \"accepted\", \"transient\" or \"terminal\"")
		}
		switch code {
		case 200, 201, 202, 204:
			return p, fieldErr(field, "%d always means accepted and cannot be agreed away", code)
		case 401, 403:
			if Outcome(outcome) == Accepted {
				return p, fieldErr(field, "%d cannot be read as accepted: that would weaken authentication", code)
			}
		case 207:
			return p, fieldErr(field, "207 is governed by policy.multi_status")
		}
		if !o.Agreement.Valid() {
			return p, errNoAgreement(field)
		}
		p.Statuses[code] = Outcome(outcome)
	}
	return p, nil
}

func setSeconds(dst *time.Duration, v *float64, field string, lo, hi float64) *FieldError {
	if v == nil {
		return nil
	}
	if !(*v >= lo && *v <= hi) {
		return fieldErr(field, "must be between %g and %g seconds", lo, hi)
	}
	*dst = time.Duration(*v * float64(time.Second))
	return nil
}

func setInt(dst, v *int, field string, lo, hi int) *FieldError {
	if v == nil {
		return nil
	}
	if *v < lo || *v > hi {
		return fieldErr(field, "must be between %d and %d", lo, hi)
	}
	*dst = *v
	return nil
}
