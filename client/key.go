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

// KeyRules are the server's published rules for idempotency keys.
type KeyRules struct {
	MinLength int // in characters
	MaxLength int
	Window    time.Duration // how long a key is remembered
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
		return nil, errors.New("client: the server publishes no usable rules about keys")
	}
	return &KeyRules{d.Keys.MinLength, d.Keys.MaxLength, time.Duration(d.Keys.Window * float64(time.Second))}, nil
}

// leastKey is the number of letters and digits, out of 32, that hold 128 random bits.
const leastKey = 26

// NewKey makes a key that satisfies the rules: a UUID if it fits, else random letters and digits.
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

// Check returns why a key violates the rules, or nil.
func (r *KeyRules) Check(key string) error {
	if _, err := quote(key); err != nil {
		return err
	}
	if len(key) < r.MinLength || len(key) > r.MaxLength {
		return fmt.Errorf("client: the server accepts keys of %d to %d characters; this one has %d", r.MinLength, r.MaxLength, len(key))
	}
	return nil
}

// WithKeyRules makes and checks keys by the rules read from the server. Repeats end before the server forgets a key. Without it
// keys are UUIDs.
func WithKeyRules(r *KeyRules) Option { return func(c *Client) { c.rules = r } }

// keyFor is the caller's key, or a new one: the key must exist before the first request, in case it is repeated.
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
