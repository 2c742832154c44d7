package app

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Pauses between attempts to start on a database that is away, and between messages about it.
const (
	minWait  = 100 * time.Millisecond
	maxWait  = 2 * time.Second
	minQuiet = 30 * time.Second
	maxQuiet = 10 * time.Minute
)

// start opens the store and creates the services. If the database is away and Dependencies.Wait is set, start tries again until the database
// is there or ctx ends; meanwhile the listener answers that the server is not ready. Errors that only an operator can mend are
// returned at once.
func (a *App) start(ctx context.Context, d Dependencies, leaseTime func() time.Time) error {
	var waiting *waitingServer
	var began, spoken time.Time
	quiet := minQuiet
	for pause := minWait; ; pause = min(2*pause, maxWait) {
		err := a.openServices(ctx, d, leaseTime)
		if err == nil || ctx.Err() != nil || !d.Wait || !a.cfg.Postgres() || !errors.Is(err, store.ErrUnavailable) {
			if waiting == nil {
				return err
			}
			if err == nil {
				a.log.Info("database is there", "after", time.Since(began).Round(time.Millisecond))
			}
			return errors.Join(err, waiting.close())
		}
		a.closeServices()
		switch now := time.Now(); {
		case waiting == nil:
			began, spoken = now, now
			a.log.Warn("waiting for the database; not ready until it is there", "listen", a.servers[0].listener.Addr().String(), "error", err)
			t, err := tlsConfig(&a.cfg, a.clock.Now, a.log)
			if err != nil {
				return err
			}
			waiting = serveWaiting(a.servers[0].listener, t, d.Timeouts, a)
		case now.Sub(spoken) >= quiet:
			spoken, quiet = now, min(2*quiet, maxQuiet)
			a.log.Warn("still waiting for the database", "since", began, "error", err)
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
		}
	}
}

// openServices opens the store and creates the services on it.
func (a *App) openServices(ctx context.Context, d Dependencies, leaseTime func() time.Time) (err error) {
	if a.store, err = openStore(ctx, &a.cfg.Storage, a.log, leaseTime, d.TuneSQLite); err != nil {
		return err
	}
	if d.Clock == nil {
		if d.Clock, err = openClock(ctx, &a.cfg.Storage, a.store, a.log); err != nil {
			return err
		}
	}
	a.clock = d.Clock
	if err := CheckRing(ctx, a.store, a.ring); err != nil {
		return err
	}
	if a.node, err = claimNode(ctx, a.store, a.cfg.Node, a.url); err != nil {
		return err
	}
	return a.connect(ctx, d, a.node, a.url)
}

// closeServices returns to the state before openServices.
func (a *App) closeServices() {
	a.close()
	a.services = services{cfg: a.cfg, clock: a.clock, log: a.log, ring: a.ring}
}

// A waitingServer answers on the app's listener while the server cannot work yet.
type waitingServer struct {
	*httpServer
	lent *lentListener
	done chan error
}

func serveWaiting(l net.Listener, t *tls.Config, limits Timeouts, a *App) *waitingServer {
	problems := &problem.Writer{Base: a.url, Log: slog.New(slog.DiscardHandler)} // the wait is logged, not each request
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { unready(w, "store") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problems.Write(w, r, problem.Unavailable.With("the server waits for its database"))
	})
	always := func() bool { return true } // no connection outlasts the wait
	lent := &lentListener{Listener: l}
	s := &waitingServer{httpServer: newHTTPServer(lent, closeWhen(always, mux), t, limits, a.log), lent: lent, done: make(chan error, 1)}
	go func() { s.done <- s.run() }()
	return s
}

// close ends the server and leaves its listener open: new clients wait for the next server on it. close does not wait for clients
// that have connected and said nothing.
func (s *waitingServer) close() error {
	go s.httpServer.close()
	return errors.Join(<-s.done, s.lent.giveBack())
}

// A lentListener can be closed without closing the listener beneath it.
type lentListener struct{ net.Listener }

type deadlineListener interface{ SetDeadline(t time.Time) error }

// Close ends Accept.
func (l *lentListener) Close() error {
	return l.Listener.(deadlineListener).SetDeadline(time.Unix(1, 0))
}

// giveBack makes the listener usable again.
func (l *lentListener) giveBack() error {
	return l.Listener.(deadlineListener).SetDeadline(time.Time{})
}
