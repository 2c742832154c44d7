package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
)

// RecheckEvery is how often an answer that takes long checks that its client may still read, even if it has nothing to write meanwhile. docs/sessions.md promises a
// second.
const RecheckEvery = 500 * time.Millisecond

// Recheck authorizes the client of an answer that takes long once more: its key may have been revoked since, or its session have ended. It costs a look into memory, so
// that it can be called before each line. It is no use of the session.
func (a *API) Recheck(r *http.Request, access Access) error {
	_, err := a.Authorize(r, access.Watched())
	return err
}

// Recheck is API.Recheck for the call.
func (c *Call) Recheck() error { return c.api.Recheck(c.R, c.access) }

// While returns a context of the request that ends when its client may no longer read, or done is closed. The caller must call stop.
func (a *API) While(r *http.Request, access Access, clk clock.Clock, done <-chan struct{}) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		check := NewPulse(clk, RecheckEvery)
		defer check.Stop()
		for {
			select {
			case <-check.Beat:
				check.Again()
				if a.Recheck(r, access) != nil {
					return
				}
			case <-done:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(); <-ended }
}

// A Pulse beats for as long as an answer is under way, even when it is busy.
type Pulse struct {
	Beat  chan struct{}
	clock clock.Clock
	every time.Duration
	timer clock.Timer
}

// NewPulse returns a pulse whose first beat comes after the given time.
func NewPulse(c clock.Clock, every time.Duration) *Pulse {
	p := &Pulse{clock: c, every: every, Beat: make(chan struct{}, 1)}
	p.Again()
	return p
}

// Again sets the next beat, after one was received.
func (p *Pulse) Again() { p.timer = p.clock.AfterFunc(p.every, func() { p.Beat <- struct{}{} }) }

// Stop ends the pulse.
func (p *Pulse) Stop() { p.timer.Stop() }
