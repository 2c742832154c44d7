package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// NewKey makes an idempotency key: a random UUID, version 4.
func NewKey() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	t := hex.EncodeToString(b[:])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}

// KeyRules are what the server has published about the keys of what is posted to it.
type KeyRules struct {
	MinLength int // in characters
	MaxLength int
	Window    time.Duration // for which a key is remembered
}

// KeyRules reads the server's published rules.
func (c *Client) KeyRules(ctx context.Context) (*KeyRules, error) {
	var d struct {
		Keys *struct {
			MinLength int     `json:"min_length"`
			MaxLength int     `json:"max_length"`
			Window    float64 `json:"window_seconds"`
		} `json:"api_idempotency_key"`
	}
	if err := c.do(ctx, http.MethodGet, "/.well-known/webhook-service", nil, nil, &d); err != nil {
		return nil, err
	}
	if d.Keys == nil || d.Keys.MaxLength < d.Keys.MinLength || d.Keys.MaxLength < leastKey {
		return nil, errors.New("client: the server publishes no rules about keys that can be kept to")
	}
	return &KeyRules{d.Keys.MinLength, d.Keys.MaxLength, time.Duration(d.Keys.Window * float64(time.Second))}, nil
}

// leastKey is how many letters and digits, of 32 that are used, hold 128 random bits.
const leastKey = 26

// NewKey makes a key that keeps to the rules: a UUID where it fits, else random letters and digits.
func (r *KeyRules) NewKey() string {
	key := NewKey()
	if len(key) >= r.MinLength && len(key) <= r.MaxLength {
		return key
	}
	n := min(max(r.MinLength, leastKey), r.MaxLength)
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()[:n]
}

// Check says what is wrong with a key of one's own, or nil.
func (r *KeyRules) Check(key string) error {
	if _, err := quote(key); err != nil {
		return err
	}
	if len(key) < r.MinLength || len(key) > r.MaxLength {
		return fmt.Errorf("client: the server takes keys of %d to %d characters, not of %d", r.MinLength, r.MaxLength, len(key))
	}
	return nil
}

// WithKeyRules has keys made, and those of the caller checked, by rules that were read from the server. Repeats end before
// the window does. Without it keys are UUIDs.
func WithKeyRules(r *KeyRules) Option { return func(c *Client) { c.rules = r } }

// keyFor is the caller's key, or a new one: the request may have to be repeated, by the client or by the caller, and a key
// must be there before that is known.
func (c *Client) keyFor(own string) (string, error) {
	switch {
	case own == "" && c.rules != nil:
		return c.rules.NewKey(), nil
	case own == "":
		return NewKey(), nil
	case c.rules != nil:
		return own, c.rules.Check(own)
	}
	return own, nil
}

// quote writes a key as a structured-field String.
func quote(key string) (string, error) {
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return "", errors.New("client: an idempotency key is made of printable ASCII characters")
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`, nil
}
