package godwit

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// A Policy says how to deliver to an endpoint. A profile gives the defaults; an endpoint may override single members.
type Policy struct {
	Base       time.Duration   // window of the first retry's delay; doubles with every further one
	Cap        time.Duration   // widest window
	Schedule   []time.Duration // fixed delays in place of Base and Cap; jitter only lengthens them (decision 3)
	MaxRetries int
	MinRetries int           // minimum that an override may set (OJS-RTY-2)
	MaxElapsed time.Duration // from a run's first attempt
	// RetryAfterReplaces makes a receiver's Retry-After replace the schedule's delay, even if it is shorter (OJS-DLV-7).
	// Otherwise it is a minimum.
	RetryAfterReplaces bool

	Timeout     time.Duration // one attempt, from dialling to the last byte of the response
	Concurrency int           // attempts in flight to the endpoint
	Rate        float64       // attempts a second; 0 is no limit
	Burst       int           // attempts at once under Rate
	Windows     []RateWindow  // attempts within any window of time; none: no limit (CCW-LIM-1, CCW-LIM-3)
	// AccountPerMinute limits the attempts to all endpoints of the tenant that have it, together; 0 is no limit
	// (CCW-LIM-2).
	AccountPerMinute int
	HoldScope        string // scope of a Retry-After: "endpoint" or "event"
	SkipWhilePaused  bool   // the endpoint does not get events that arrive while it is paused (decision 5)

	DisableAfter int // consecutive terminal outcomes over distinct events; 0 never
	// DisableAfterFailures counts attempts in a row that were not accepted, of any kind; 0 never (CCW-HLT-3).
	DisableAfterFailures int
	ReenableAfter        time.Duration // an endpoint disabled by failures is tried again after this time; 0 never (CCW-HLT-5)
	DegradedAbove        float64       // share of failed attempts in an hour above which it is degraded; 0: not watched (CCW-HLT-2)

	CircuitAfter  int           // consecutive failures that open the circuit; 0 never
	ProbeInterval time.Duration // minimum time between probes of an open circuit; doubles up to ten times
	MaxHops       int           // redirects followed inside one attempt
	AnyHost       bool          // redirects may lead to another host

	Statuses     map[int]Outcome // agreed readings of status codes (EDS-AGR-2)
	MultiStatus  bool            // 207 bodies are read by agreement (EDS-STA-207b)
	RefreshOn401 bool            // after a 401, make one more attempt at once, newly signed and with a renewed token (EDS-STA-401b, T-26)
	DedupWindow  time.Duration   // the receiver's window; retries end before it
	Key          KeyFormat       // the receiver's

	Announce bool // publish outcomes on the bus as webhook.* events (OJS-OBS-1)
	Alert    bool // alert the account's admins of dead letters, degradation and disabling (CCW-DLQ-3)

	MaxLiveSecrets int    // signing secrets at once; a further rotation ends the oldest. 0: the server's own limit
	Rotation       string // signatures to send while two secrets are live
}

// A RateWindow allows Count attempts in any period of length Per.
type RateWindow struct {
	Count int
	Per   time.Duration
}

// The values of Rotation. Receivers that read only one signature need theirs to be the first (OT-15, CT-8).
const (
	RotationBoth     = "both"      // the newest first
	RotationOldFirst = "old-first" // both, the older first
	RotationOldOnly  = "old-only"  // the older one alone until it expires
)

// The values of HoldScope.
const (
	HoldEndpoint = "endpoint"
	HoldEvent    = "event"
)

// PolicyOverrides lists an endpoint's deviations from its profile. Nil members follow the profile.
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
	PerSecond          *int              `json:"per_second,omitempty"`             // attempts in any second; 0 lifts the profile's limit
	PerMinute          *int              `json:"per_minute,omitempty"`             // attempts in any minute; 0 lifts the profile's limit
	AccountPerMinute   *int              `json:"account_per_minute,omitempty"`     // shared by the tenant's endpoints; 0 leaves this one out
	DisableAfterFails  *int              `json:"disable_after_failures,omitempty"` // attempts in a row, of any kind; 0 never
	ReenableAfterSecs  *float64          `json:"reenable_after_seconds,omitempty"` // 0 never
	SkipWhilePaused    *bool             `json:"skip_while_paused,omitempty"`      // false: events that arrive meanwhile are held
	Announce           *bool             `json:"announce,omitempty"`               // webhook.* events about its deliveries
	Alert              *bool             `json:"alert,omitempty"`                  // alerts about its dead letters and health
	Rotation           *string           `json:"rotation,omitempty"`               // both | old-first | old-only
	DedupWindowSeconds *float64          `json:"dedup_window_seconds,omitempty"`
	KeyMinLength       *int              `json:"key_min_length,omitempty"` // the key format that the receiver has published
	KeyMaxLength       *int              `json:"key_max_length,omitempty"`
	KeyAlphabet        *string           `json:"key_alphabet,omitempty"` // printable | alphanumeric | hex
	Statuses           map[string]string `json:"statuses,omitempty"`     // "404": "transient"
	MultiStatus        *bool             `json:"multi_status,omitempty"`
	RefreshOn401       *bool             `json:"refresh_on_401,omitempty"` // false where a credential cannot be renewed: 401 is terminal at once
	Agreement          *Agreement        `json:"agreement,omitempty"`
}

// Over returns the overrides with those of base for members that are nil.
func (o PolicyOverrides) Over(base PolicyOverrides) PolicyOverrides {
	own, under := reflect.ValueOf(&o).Elem(), reflect.ValueOf(base)
	for i := range own.NumField() {
		if own.Field(i).IsNil() { // all are pointers or maps
			own.Field(i).Set(under.Field(i))
		}
	}
	return o
}

// An Agreement permits another reading of status codes, or PUT. It is written down and open to the operators of both
// parties (EDS-AGR-3). The API shows it to both.
type Agreement struct {
	Document      string `json:"document"`        // where it is written
	VisibleToBoth bool   `json:"visible_to_both"` // operators of both parties can read it
}

// Valid reports whether the agreement can justify an override.
func (a *Agreement) Valid() bool {
	if a == nil || !a.VisibleToBoth {
		return false
	}
	u, err := url.Parse(a.Document)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// A FieldError names the member that is wrong and says how to fix it.
type FieldError struct {
	Field  string
	Detail string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Detail }

func fieldErr(field, format string, args ...any) *FieldError {
	return &FieldError{Field: field, Detail: fmt.Sprintf(format, args...)}
}

// Apply applies the overrides to the profile's defaults. It refuses what no conforming sender may do: retrying without
// limit, retrying past the receiver's dedup window, reading 2xx or credential failures against the document.
func (o *PolicyOverrides) Apply(p Policy) (Policy, *FieldError) {
	for _, err := range []*FieldError{
		setSeconds(&p.Base, o.BaseSeconds, "policy.base_seconds", 0.001, 3600),
		setSeconds(&p.Cap, o.CapSeconds, "policy.cap_seconds", 0.001, 86400),
		setSeconds(&p.MaxElapsed, o.MaxElapsedSeconds, "policy.max_elapsed_seconds", 1, 30*86400),
		setSeconds(&p.Timeout, o.TimeoutSeconds, "policy.timeout_seconds", 0.1, 300),
		setSeconds(&p.DedupWindow, o.DedupWindowSeconds, "policy.dedup_window_seconds", 60, 90*86400),
		setInt(&p.MaxRetries, o.MaxRetries, "policy.max_retries", p.MinRetries, 200),
		setInt(&p.Concurrency, o.Concurrency, "policy.concurrency", 1, 1024),
		setInt(&p.Burst, o.Burst, "policy.burst", 1, 100000),
		setInt(&p.DisableAfter, o.DisableAfter, "policy.disable_after", 0, 100000),
		setInt(&p.DisableAfterFailures, o.DisableAfterFails, "policy.disable_after_failures", 0, 100000),
		setSeconds(&p.ReenableAfter, o.ReenableAfterSecs, "policy.reenable_after_seconds", 0, 30*86400),
		setInt(&p.CircuitAfter, o.CircuitAfter, "policy.circuit_after", 0, 100000),
		setInt(&p.AccountPerMinute, o.AccountPerMinute, "policy.account_per_minute", 0, maxPerWindow),
		p.setWindow(o.PerSecond, "policy.per_second", time.Second),
		p.setWindow(o.PerMinute, "policy.per_minute", time.Minute),
		p.Key.set(o.KeyMinLength, o.KeyMaxLength, o.KeyAlphabet),
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
	if o.Rotation != nil {
		switch *o.Rotation {
		case RotationBoth, RotationOldFirst, RotationOldOnly:
			p.Rotation = *o.Rotation
		default:
			return p, fieldErr("policy.rotation", "must be %q, %q or %q", RotationBoth, RotationOldFirst, RotationOldOnly)
		}
	}
	setBool(&p.RefreshOn401, o.RefreshOn401)
	setBool(&p.SkipWhilePaused, o.SkipWhilePaused)
	setBool(&p.Announce, o.Announce)
	setBool(&p.Alert, o.Alert)
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

func setBool(dst, v *bool) {
	if v != nil {
		*dst = *v
	}
}

// maxPerWindow limits the memory that counting takes.
const maxPerWindow = 100_000

// setWindow replaces or removes the profile's window of this length.
func (p *Policy) setWindow(count *int, field string, per time.Duration) *FieldError {
	if count == nil {
		return nil
	}
	if *count < 0 || *count > maxPerWindow {
		return fieldErr(field, "must be between 0 and %d; 0 is no limit", maxPerWindow)
	}
	p.Windows = slices.DeleteFunc(slices.Clone(p.Windows), func(w RateWindow) bool { return w.Per == per })
	if *count > 0 {
		p.Windows = append(p.Windows, RateWindow{Count: *count, Per: per})
	}
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
