package native

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// EndpointStats holds the health of an endpoint and its delivery policy.
type EndpointStats struct {
	EndpointID        string            `json:"endpoint_id"`
	Status            string            `json:"status" enum:"active,paused,disabled"`
	StatusReason      string            `json:"status_reason,omitempty"`
	ReenableAt        *time.Time        `json:"reenable_at,omitempty" doc:"While it is disabled by failures: when it is tried again"`
	Pending           int64             `json:"pending" doc:"Deliveries that wait or are under way"`
	DeadLetters       int               `json:"dead_letters" doc:"Deliveries that ended without being accepted; counted up to 1000"`
	DeadLettersCapped bool              `json:"dead_letters_capped" doc:"There are more than were counted"`
	Health            Health            `json:"health"`
	Policy            Policy            `json:"policy" doc:"In force: the profile's defaults with the endpoint's overrides"`
	Overrides         []string          `json:"overrides" doc:"Members of the policy that the endpoint overrides"`
	Agreements        []ActiveAgreement `json:"agreements" doc:"What deviates from the status table or method by agreement with the receiver"`
}

// Health is the state of an endpoint that the engine derived from attempts.
type Health struct {
	Accepted            int64      `json:"accepted"`
	Transient           int64      `json:"transient"`
	Terminal            int64      `json:"terminal"`
	ConsecutiveFailures int        `json:"consecutive_failures"`
	ConsecutiveTerminal int        `json:"consecutive_terminal"`
	Streak              int        `json:"streak" doc:"Attempts of any kind that were not accepted since the last accepted one"`
	Degraded            bool       `json:"degraded" doc:"Too many of its attempts failed in the last hour"`
	DegradedAt          *time.Time `json:"degraded_at,omitempty"`
	AvgDurationMS       float64    `json:"avg_duration_ms"`
	LastReason          string     `json:"last_reason,omitempty"`
	LastAcceptedAt      *time.Time `json:"last_accepted_at,omitempty"`
	LastFailureAt       *time.Time `json:"last_failure_at,omitempty"`
	HoldUntil           *time.Time `json:"hold_until,omitempty" doc:"Nothing is sent before this: the endpoint asked for it"`
	SunsetAt            *time.Time `json:"sunset_at,omitempty" doc:"When the endpoint said it would end"`
	CircuitOpenAt       *time.Time `json:"circuit_open_at,omitempty" doc:"Since when it is only probed"`
	ProbeAt             *time.Time `json:"probe_at,omitempty"`
}

// Policy is the delivery policy in force for an endpoint.
type Policy struct {
	BaseSeconds        float64           `json:"base_seconds"`
	CapSeconds         float64           `json:"cap_seconds"`
	ScheduleSeconds    []float64         `json:"schedule_seconds,omitempty"`
	MaxRetries         int               `json:"max_retries"`
	MaxElapsedSeconds  float64           `json:"max_elapsed_seconds"`
	TimeoutSeconds     float64           `json:"timeout_seconds"`
	Concurrency        int               `json:"concurrency"`
	RatePerSecond      float64           `json:"rate_per_second" doc:"0 is no limit"`
	Burst              int               `json:"burst"`
	HoldScope          string            `json:"hold_scope"`
	PerSecond          int               `json:"per_second" doc:"Attempts in any second; 0 is no limit"`
	PerMinute          int               `json:"per_minute" doc:"Attempts in any minute; 0 is no limit"`
	AccountPerMinute   int               `json:"account_per_minute" doc:"Attempts of all the tenant's endpoints that have it, in any minute; 0 is no limit"`
	SkipWhilePaused    bool              `json:"skip_while_paused" doc:"Events that come while the endpoint is paused are not for it"`
	DisableAfter       int               `json:"disable_after"`
	DisableAfterFails  int               `json:"disable_after_failures" doc:"Attempts in a row that were not accepted; 0 never"`
	ReenableAfterSecs  float64           `json:"reenable_after_seconds" doc:"How long it rests when disabled by failures; 0 is until it is resumed"`
	DegradedAbove      float64           `json:"degraded_above" doc:"Share of failed attempts in an hour above which it is degraded; 0: not watched"`
	CircuitAfter       int               `json:"circuit_after"`
	DedupWindowSeconds float64           `json:"dedup_window_seconds"`
	KeyMinLength       int               `json:"key_min_length,omitempty" doc:"What the receiver has published about idempotency keys; those that are made here keep to it"`
	KeyMaxLength       int               `json:"key_max_length,omitempty"`
	KeyAlphabet        string            `json:"key_alphabet,omitempty" enum:"printable,alphanumeric,hex"`
	Statuses           map[string]string `json:"statuses,omitempty"`
	MultiStatus        bool              `json:"multi_status"`
	Announce           bool              `json:"announce" doc:"webhook.* events tell about its deliveries"`
	Alert              bool              `json:"alert" doc:"Its dead letters and bad health are told to the tenant's alert addresses"`
	Rotation           string            `json:"rotation,omitempty" doc:"Which signatures go out while two secrets are live: both, old-first or old-only"`
	RefreshOn401       bool              `json:"refresh_on_401" doc:"A 401 gets one more attempt at once, newly signed and with a renewed token"`
}

// ActiveAgreement is a written agreement with the receiver, and the settings that depend on it.
type ActiveAgreement struct {
	Document      string   `json:"document"`
	VisibleToBoth bool     `json:"visible_to_both"`
	Covers        []string `json:"covers" doc:"What rests on it, as in statuses.404, multi_status, method"`
}

func healthView(h *godwit.Health) Health {
	return Health{
		Accepted: h.Accepted, Transient: h.Transient, Terminal: h.Terminal,
		ConsecutiveFailures: h.ConsecutiveFailures, ConsecutiveTerminal: h.ConsecutiveTerminal,
		Streak: h.Streak, Degraded: !h.DegradedAt.IsZero(), DegradedAt: timestamp(h.DegradedAt),
		AvgDurationMS: h.AvgDurationMS, LastReason: string(h.LastReason),
		LastAcceptedAt: timestamp(h.LastAcceptedAt), LastFailureAt: timestamp(h.LastFailureAt),
		HoldUntil: timestamp(h.HoldUntil), SunsetAt: timestamp(h.SunsetAt),
		CircuitOpenAt: timestamp(h.CircuitOpenAt), ProbeAt: timestamp(h.ProbeAt),
	}
}

func policyView(p *godwit.Policy) Policy {
	v := Policy{
		BaseSeconds: p.Base.Seconds(), CapSeconds: p.Cap.Seconds(), MaxRetries: p.MaxRetries, MaxElapsedSeconds: p.MaxElapsed.Seconds(),
		TimeoutSeconds: p.Timeout.Seconds(), Concurrency: p.Concurrency, RatePerSecond: p.Rate, Burst: p.Burst, HoldScope: p.HoldScope,
		DisableAfter: p.DisableAfter, CircuitAfter: p.CircuitAfter, DedupWindowSeconds: p.DedupWindow.Seconds(), MultiStatus: p.MultiStatus,
		RefreshOn401: p.RefreshOn401, AccountPerMinute: p.AccountPerMinute, SkipWhilePaused: p.SkipWhilePaused,
		DisableAfterFails: p.DisableAfterFailures, ReenableAfterSecs: p.ReenableAfter.Seconds(), DegradedAbove: p.DegradedAbove,
		Announce: p.Announce, Alert: p.Alert, Rotation: p.Rotation,
		KeyMinLength: p.Key.Min, KeyMaxLength: p.Key.Max, KeyAlphabet: p.Key.Alphabet,
	}
	for _, w := range p.Windows {
		switch w.Per {
		case time.Second:
			v.PerSecond = w.Count
		case time.Minute:
			v.PerMinute = w.Count
		}
	}
	for _, d := range p.Schedule {
		v.ScheduleSeconds = append(v.ScheduleSeconds, d.Seconds())
	}
	for code, outcome := range p.Statuses {
		if v.Statuses == nil {
			v.Statuses = map[string]string{}
		}
		v.Statuses[strconv.Itoa(code)] = string(outcome)
	}
	return v
}

// overridden names the members that differ from the profile.
func overridden(o *godwit.PolicyOverrides) []string {
	set := map[string]bool{
		"base_seconds": o.BaseSeconds != nil, "cap_seconds": o.CapSeconds != nil, "max_retries": o.MaxRetries != nil,
		"max_elapsed_seconds": o.MaxElapsedSeconds != nil, "timeout_seconds": o.TimeoutSeconds != nil, "concurrency": o.Concurrency != nil,
		"rate_per_second": o.RatePerSecond != nil, "burst": o.Burst != nil, "hold_scope": o.HoldScope != nil,
		"disable_after": o.DisableAfter != nil, "circuit_after": o.CircuitAfter != nil, "dedup_window_seconds": o.DedupWindowSeconds != nil,
		"multi_status": o.MultiStatus != nil, "refresh_on_401": o.RefreshOn401 != nil,
		"per_second": o.PerSecond != nil, "per_minute": o.PerMinute != nil, "account_per_minute": o.AccountPerMinute != nil,
		"disable_after_failures": o.DisableAfterFails != nil, "reenable_after_seconds": o.ReenableAfterSecs != nil,
		"skip_while_paused": o.SkipWhilePaused != nil, "announce": o.Announce != nil, "alert": o.Alert != nil, "rotation": o.Rotation != nil,
		"key_min_length": o.KeyMinLength != nil, "key_max_length": o.KeyMaxLength != nil, "key_alphabet": o.KeyAlphabet != nil,
	}
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name] {
			names = append(names, name)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(o.Statuses)) {
		names = append(names, "statuses."+code)
	}
	return names
}

func agreements(e *godwit.Endpoint) []ActiveAgreement {
	a := e.Policy.Agreement
	if a == nil {
		return []ActiveAgreement{}
	}
	covers := []string{}
	if e.Method == "PUT" {
		covers = append(covers, "method")
	}
	if m := e.Policy.MultiStatus; m != nil && *m {
		covers = append(covers, "multi_status")
	}
	for _, code := range slices.Sorted(maps.Keys(e.Policy.Statuses)) {
		covers = append(covers, "statuses."+code)
	}
	return []ActiveAgreement{{Document: a.Document, VisibleToBoth: a.VisibleToBoth, Covers: covers}}
}
