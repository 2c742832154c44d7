package app

import (
	"net/http"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/sender/oauth2cc"
)

// credentials gets OAuth2 tokens by the same sender as deliveries, so that they meet the same guard.
type credentials struct {
	sender *sender.Sender
	now    func() time.Time
}

func (c credentials) OAuth2(auth *godwit.Auth) engine.Credential {
	source, err := oauth2cc.New(c.sender, oauth2cc.Config{
		TokenURL: auth.TokenURL, ClientID: auth.ClientID, ClientSecret: auth.ClientSecret, Scopes: auth.Scopes, Audience: auth.Audience,
		Clock: c.now,
	})
	if err != nil {
		return broken{err}
	}
	return &token{source: source}
}

// token authorises an endpoint's requests.
type token struct {
	source *oauth2cc.Source
	mu     sync.Mutex
	last   string // what the receiver may have refused
}

func (t *token) Authorize(r *http.Request) error {
	value, err := t.source.Token(r.Context())
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.last = value
	t.mu.Unlock()
	r.Header.Set("Authorization", "Bearer "+value)
	return nil
}

func (t *token) Invalidate() {
	t.mu.Lock()
	last := t.last
	t.mu.Unlock()
	t.source.Invalidate(last)
}

// broken is a credential that was valid when it was registered and is so no longer: the operator's rules have changed.
type broken struct{ err error }

func (b broken) Authorize(*http.Request) error { return b.err }
func (broken) Invalidate()                     {}
