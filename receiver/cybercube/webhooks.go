package cybercube

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/receiver"
)

// An Event is a webhook event (CCW-SDK-7).
type Event struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	APIVersion string `json:"api_version"`
	CreatedAt  string `json:"created_at"`
	Data       Data   `json:"data"`
	AccountID  string `json:"account_id"`
	Livemode   bool   `json:"livemode"`
}

// Data is the object of an event.
type Data struct {
	Object json.RawMessage `json:"object"`
	// PreviousAttributes are the changed attributes with their old values.
	PreviousAttributes json.RawMessage `json:"previous_attributes,omitempty"`
}

// A SignatureError says that a request is not authentic. The text is one of the standard's: Invalid signature format, Invalid
// timestamp, Timestamp outside tolerance, Signature mismatch (CCW-SDK-4).
type SignatureError struct{ Message string }

func (e *SignatureError) Error() string { return e.Message }

// A secretError has the standard's text (CCW-SDK-1).
type secretError string

func (e secretError) Error() string { return string(e) }

// ErrSecretFormat is returned for secrets that do not begin with whsec_.
var ErrSecretFormat error = secretError("Invalid webhook secret format")

const secretPrefix = "whsec_"

// DefaultTolerance is the largest difference between the signed time and ours.
const DefaultTolerance = 300 * time.Second

type settings struct {
	secrets   []string
	tolerance time.Duration
	clock     func() time.Time
}

// An Option configures verification.
type Option func(*settings)

// WithSecret adds another accepted secret, as during a rotation (CCW-SEC-14).
func WithSecret(secret string) Option {
	return func(s *settings) { s.secrets = append(s.secrets, secret) }
}

// WithTolerance sets the largest difference between the signed time and ours; 0 is honoured. Defaults to 300 seconds.
func WithTolerance(d time.Duration) Option { return func(s *settings) { s.tolerance = d } }

// WithClock sets the clock. Defaults to time.Now.
func WithClock(clock func() time.Time) Option { return func(s *settings) { s.clock = clock } }

// Webhooks verifies and parses webhooks. It may be used concurrently.
type Webhooks struct{ settings settings }

// New makes a verifier. Secrets begin with whsec_.
func New(secret string, options ...Option) (*Webhooks, error) {
	s := settings{secrets: []string{secret}, tolerance: DefaultTolerance, clock: time.Now}
	for _, o := range options {
		o(&s)
	}
	for _, secret := range s.secrets {
		if !strings.HasPrefix(secret, secretPrefix) {
			return nil, ErrSecretFormat
		}
	}
	return &Webhooks{s}, nil
}

// ConstructEvent verifies the raw body and then parses it. The error is a [*SignatureError] if the request is not authentic,
// and another one if it is not JSON (CCW-SDK-6).
func (w *Webhooks) ConstructEvent(payload []byte, signature, timestamp string, options ...Option) (*Event, error) {
	s := w.settings
	s.secrets = s.secrets[:len(s.secrets):len(s.secrets)]
	for _, o := range options {
		o(&s)
	}
	if err := s.verify(payload, signature, timestamp); err != nil {
		return nil, err
	}
	var event Event
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, fmt.Errorf("parse event: %w", err)
	}
	return &event, nil
}

// verify is the check of the scheme receiver.Cybercube.
func (s *settings) verify(payload []byte, signature, timestamp string) error {
	tolerance := s.tolerance
	if tolerance == 0 {
		tolerance = receiver.NoTolerance
	}
	header := http.Header{"X-Webhook-Signature": {signature}, "X-Webhook-Timestamp": {timestamp}}
	_, err := receiver.Verify(receiver.Cybercube{Secrets: s.secrets}, &http.Request{Method: http.MethodPost, Header: header}, payload,
		receiver.VerifyOptions{Freshness: receiver.Freshness{Tolerance: tolerance}, Clock: s.clock})
	if refused, ok := errors.AsType[*receiver.SignatureError](err); ok {
		return &SignatureError{refused.Message}
	}
	return err
}

// A Verification is what the standard's verify function returns (CCW-SIG-7).
type Verification struct {
	Valid bool   `json:"valid"`
	Error string `json:"error,omitempty"`
}

// Verify is the standard's verify function. Its text is "Timestamp outside tolerance window", where ConstructEvent omits the
// last word (CCW-SIG-10). The secret may be any text.
func Verify(payload []byte, signature, timestamp, secret string, options ...Option) Verification {
	s := settings{secrets: []string{secret}, tolerance: DefaultTolerance, clock: time.Now}
	for _, o := range options {
		o(&s)
	}
	err := s.verify(payload, signature, timestamp)
	if err == nil {
		return Verification{Valid: true}
	}
	message := err.Error()
	if message == "Timestamp outside tolerance" {
		message += " window"
	}
	return Verification{Error: message}
}

// Sign makes a signature: sha256= and the hex of HMAC-SHA256 over <timestamp>.<payload> (CCW-SIG-16). It is for tests of
// handlers.
func Sign(payload []byte, secret string, timestamp int64) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(strconv.AppendInt(nil, timestamp, 10))
	mac.Write([]byte{'.'})
	mac.Write(payload)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
