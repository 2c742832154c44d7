package profile

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// cybercube is the CYBERCUBE webhooks standard: its event schema, a MAC over time and body, seven attempts over 34 hours, rate
// limits of an endpoint, and health rules that disable one for a day.
type cybercube struct{}

func init() { register(cybercube{}) }

func (cybercube) Name() string { return "cybercube" }

// Defaults: the schedule takes a day and a half; the ten days leave room for longer Retry-After waits.
func (cybercube) Defaults() godwit.Policy {
	return godwit.Policy{
		Schedule:             seconds(60, 300, 1800, 7200, 28800, 86400), // CCW-RTY-1
		MaxRetries:           6,
		MaxElapsed:           10 * 24 * time.Hour,
		Timeout:              30 * time.Second,
		Concurrency:          32,
		Windows:              []godwit.RateWindow{{Count: 1000, Per: time.Minute}, {Count: 100, Per: time.Second}}, // CCW-LIM-1, CCW-LIM-3
		AccountPerMinute:     10000,
		HoldScope:            godwit.HoldEvent,
		DisableAfterFailures: 11, // more than ten in a row (CCW-HLT-3)
		ReenableAfter:        24 * time.Hour,
		DegradedAbove:        0.5,
		ProbeInterval:        5 * time.Second,
		MaxHops:              3,
		AnyHost:              true,
		DedupWindow:          30 * 24 * time.Hour,
		Alert:                true,
		MaxLiveSecrets:       2,
		Rotation:             godwit.RotationBoth,
	}
}

func (cybercube) Algorithms() []string { return []string{godwit.AlgorithmHMAC} }

func (p cybercube) NewKey(algorithm string) (KeyMaterial, error) {
	if algorithm != godwit.AlgorithmHMAC {
		return KeyMaterial{}, fmt.Errorf("profile %s has no algorithm %q", p.Name(), algorithm)
	}
	return newTextSecret(), nil
}

// ImportKey takes a secret of the form that NewKey makes (CCW-SEC-1).
func (p cybercube) ImportKey(algorithm, text string) (KeyMaterial, error) {
	if algorithm != godwit.AlgorithmHMAC {
		return KeyMaterial{}, fmt.Errorf("profile %s has no algorithm %q", p.Name(), algorithm)
	}
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if b, err := base64.RawURLEncoding.Strict().DecodeString(encoded); !ok || err != nil || len(b) != 32 || len(encoded) != 43 {
		return KeyMaterial{}, fmt.Errorf("must be %q followed by 43 characters: base64url of 32 bytes without padding", secretPrefix)
	}
	return KeyMaterial{Secret: []byte(text), Display: text}, nil
}

// ShowKey returns the secret: its bytes are its text.
func (cybercube) ShowKey(_ string, secret []byte) string { return string(secret) }

func (p cybercube) NewSigner(keys []SigningKey) (Signer, error) {
	return newTextSigner(p, fieldCCWTimestamp, fieldCCWSignature, keys)
}

// The fields of a delivery (CCW-HTTP-2..10, CCW-HTTP-19).
const (
	fieldCCWID        = "X-Webhook-Id"
	fieldCCWTimestamp = "X-Webhook-Timestamp"
	fieldCCWSignature = "X-Webhook-Signature"
	fieldCCWEventType = "X-Webhook-Event-Type"
	fieldCCWAttempt   = "X-Webhook-Delivery-Attempt"
	fieldCCWFirstAt   = "X-Webhook-First-Attempt-At"
	fieldCCWRetries   = "X-Webhook-Retry-Count"
	fieldLimit        = "X-Ratelimit-Limit"
	fieldRemaining    = "X-Ratelimit-Remaining"
	fieldReset        = "X-Ratelimit-Reset"
	ccwUserAgent      = "CYBERCUBE-Webhook/1.0"
)

// Render numbers the attempt within its run: a replay counts from one again (CCW-HTTP-8, CCW-DLQ-11).
func (cybercube) Render(m Message) (http.Header, []byte) {
	run := &m.Delivery.Run
	names := [...]string{"Content-Type", fieldKey, fieldCCWID, fieldCCWEventType, fieldCCWAttempt, "User-Agent",
		fieldCCWFirstAt, fieldCCWRetries, fieldLimit, fieldRemaining, fieldReset}
	values := [len(names)]string{mediaJSON, QuoteKey(m.Event.Key), CybercubeAttemptID(m.ID), m.Event.Type, strconv.Itoa(run.Attempts + 1), ccwUserAgent}
	if run.Attempts > 0 {
		values[6], values[7] = run.FirstAt.UTC().Format(cybercubeTime), strconv.Itoa(run.Attempts)
	}
	if m.Budget.Limit > 0 {
		values[8], values[9] = strconv.Itoa(m.Budget.Limit), strconv.Itoa(m.Budget.Remaining)
		values[10] = strconv.FormatInt(m.Budget.Reset.Unix(), 10)
	}
	h := make(http.Header, 16)
	for i, name := range names {
		if values[i] != "" {
			h[name] = values[i : i+1 : i+1]
		}
	}
	keep(h, m.Event, true)
	return h, cybercubeBody(m.Event, m.Account, !m.Test)
}

func (cybercube) eventID(e *godwit.Event) string { return CybercubeEventID(e) }

func (cybercube) FollowStatuses() []int { return redirects() }

// Classify: a Retry-After is a floor under the schedule's delay (CCW-RSP-9), and a 410 disables (CCW-RSP-8).
func (cybercube) Classify(x *godwit.Exchange, p *godwit.Policy, now time.Time) godwit.Verdict {
	v := classifyBy(rejecting, x, p)
	v.DisableEndpoint = gone(x, &v)
	if x.Failure == nil && v.Outcome == godwit.Transient &&
		(x.Status == http.StatusTooManyRequests || x.Status == http.StatusServiceUnavailable) {
		v.RetryAfter = retryAfter(x.Header, now)
	}
	return v
}
