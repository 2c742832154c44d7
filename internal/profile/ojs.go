package profile

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// ojs is the Open Job Spec's webhook extension: its event envelope, a MAC over time and body, eight attempts over 41 hours. It
// never disables an endpoint, and announces every outcome on the bus.
type ojs struct{}

func init() { register(ojs{}) }

func (ojs) Name() string { return "ojs" }

// ojsMaxRetryAfter is the longest wait that a receiver can ask for (OJS-DLV-8).
const ojsMaxRetryAfter = 24 * time.Hour

// Defaults: if a receiver answers every attempt with the longest wait, the run still has its eight attempts within the eight
// days.
func (ojs) Defaults() godwit.Policy {
	return godwit.Policy{
		Schedule:           seconds(30, 120, 600, 3600, 4*3600, 12*3600, 24*3600), // OJS-RTY-1
		MaxRetries:         7,
		MinRetries:         5,
		MaxElapsed:         8 * 24 * time.Hour,
		RetryAfterReplaces: true,
		Timeout:            30 * time.Second,
		Concurrency:        32,
		HoldScope:          godwit.HoldEvent,
		SkipWhilePaused:    true,
		ProbeInterval:      5 * time.Second,
		MaxHops:            3,
		AnyHost:            true,
		DedupWindow:        30 * 24 * time.Hour,
		Announce:           true,
		MaxLiveSecrets:     2,
		Rotation:           godwit.RotationBoth,
	}
}

func (ojs) Algorithms() []string { return []string{godwit.AlgorithmHMAC} }

func (p ojs) NewKey(algorithm string) (KeyMaterial, error) {
	if algorithm != godwit.AlgorithmHMAC {
		return KeyMaterial{}, fmt.Errorf("profile %s has no algorithm %q", p.Name(), algorithm)
	}
	return newTextSecret(), nil
}

// ImportKey accepts any printable text of 16 to 256 characters: the public tools bring their own secrets (decision 9).
func (p ojs) ImportKey(algorithm, text string) (KeyMaterial, error) {
	if algorithm != godwit.AlgorithmHMAC {
		return KeyMaterial{}, fmt.Errorf("profile %s has no algorithm %q", p.Name(), algorithm)
	}
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if n := utf8.RuneCountInString(text); n < 16 || n > 256 || !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable) {
		return KeyMaterial{}, fmt.Errorf("must have 16 to 256 printable characters")
	}
	return KeyMaterial{Secret: []byte(text), Display: text}, nil
}

// ShowKey returns the secret: its bytes are its text.
func (ojs) ShowKey(_ string, secret []byte) string { return string(secret) }

func (p ojs) NewSigner(keys []SigningKey) (Signer, error) {
	return newTextSigner(p, fieldOJSTimestamp, fieldOJSSignature, keys)
}

// The fields of a delivery (OJS-PAY-6..10).
const (
	fieldOJSEventType    = "X-Ojs-Event-Type"
	fieldOJSDelivery     = "X-Ojs-Delivery-Id"
	fieldOJSSubscription = "X-Ojs-Subscription-Id"
	fieldOJSTimestamp    = "X-Ojs-Timestamp"
	fieldOJSSignature    = "X-Ojs-Signature"
	ojsUserAgent         = "OJS-Webhook/1.0"
	mediaJSON            = "application/json"
)

func (ojs) Render(m Message) (http.Header, []byte) {
	values := [...]string{mediaJSON, QuoteKey(m.Event.Key), m.Event.Type, m.Delivery.ID.String(), m.Delivery.EndpointID.String(), ojsUserAgent}
	h := make(http.Header, 8) // with the two of the signature
	for i, name := range [...]string{"Content-Type", fieldKey, fieldOJSEventType, fieldOJSDelivery, fieldOJSSubscription, "User-Agent"} {
		h[name] = values[i : i+1 : i+1]
	}
	keep(h, m.Event, true)
	return h, OJSEnvelopeOf(m.Event)
}

func (ojs) eventID(e *godwit.Event) string { return OJSEventID(e) }

func (ojs) FollowStatuses() []int { return redirects() }

// Classify: Retry-After counts only on a 429, where it replaces the schedule's delay (OJS-DLV-7). A 410 is a rejection like
// others; the subscription stays (OT-25).
func (ojs) Classify(x *godwit.Exchange, p *godwit.Policy, now time.Time) godwit.Verdict {
	v := classifyBy(rejecting, x, p)
	if x.Failure == nil && x.Status == http.StatusTooManyRequests && v.Outcome == godwit.Transient {
		v.RetryAfter = min(retryAfter(x.Header, now), ojsMaxRetryAfter)
	}
	return v
}
