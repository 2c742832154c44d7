package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/client"
)

type tailCommand struct {
	JSON       bool `name:"json" help:"Print one JSON object for each attempt."`
	connection `embed:""`
}

// Help returns the text that --help shows.
func (tailCommand) Help() string {
	return `Shows each attempt of the tenant once it is recorded, on whichever node, until stopped. It shows what happens from now on; the past is in
the API (/v1/deliveries). A reader that falls far behind misses attempts: delivery does not wait for it.

If the server ends the stream or dies, the command says so on standard error and connects again. --url may name several nodes, separated by
commas; the command then goes on with the next one that answers.

Examples:

    GODWIT_KEY=gdw_… godwit tail
    godwit tail --url https://hooks.example.com --json | jq 'select(.outcome != "accepted")'
    godwit tail --url http://10.0.0.5:8080,http://10.0.0.6:8080`
}

func (c *tailCommand) Run(env *environment) error {
	t := &tail{complain: func(format string, args ...any) { fmt.Fprintf(env.stderr, "godwit: "+format+"\n", args...) }}
	target, err := c.Resolve(env.session())
	if err != nil {
		return err
	}
	for url := range strings.SplitSeq(target.URL, ",") {
		server := target.At(strings.TrimSpace(url))
		cl, err := server.Client()
		if err != nil {
			return err
		}
		t.servers = append(t.servers, server.URL)
		t.clients = append(t.clients, cl)
	}
	attempts, err := t.connect(env.ctx)
	if err != nil {
		return fmt.Errorf("tail: %w", err)
	}
	for {
		err := follow(env, attempts, c.JSON)
		attempts.Close()
		var ended *streamEnded
		if !errors.As(err, &ended) {
			return err
		}
		why := "the server ended it or died"
		if !errors.Is(ended.cause, io.EOF) {
			why = ended.cause.Error()
		}
		t.complain("the stream of attempts from %s has ended: %s. Connecting again; attempts made meanwhile are not shown", t.servers[t.current], why)
		t.current = (t.current + 1) % len(t.clients)
		if attempts, err = t.reconnect(env.ctx); err != nil || attempts == nil {
			return err
		}
		t.complain("connected to %s", t.servers[t.current])
	}
}

// A tail follows attempts by any of several servers.
type tail struct {
	servers  []string // URLs
	clients  []*client.Client
	current  int // the server that is followed, or tried first
	complain func(format string, args ...any)
}

// connect tries each server once, beginning with the current one. It returns the error of the last one.
func (t *tail) connect(ctx context.Context) (attempts *client.AttemptStream, err error) {
	for range t.clients {
		if attempts, err = t.clients[t.current].Attempts(ctx); err == nil {
			return attempts, nil
		}
		t.current = (t.current + 1) % len(t.clients)
	}
	return nil, err
}

// Pauses between attempts to connect again.
const (
	minTailPause = 250 * time.Millisecond
	maxTailPause = 5 * time.Second
)

// reconnect connects to a server that answers, however long that takes. It returns nil if ctx ends before, and an error if the
// server refuses the API key.
func (t *tail) reconnect(ctx context.Context) (*client.AttemptStream, error) {
	told := false
	for pause := minTailPause; ; pause = min(2*pause, maxTailPause) {
		attempts, err := t.connect(ctx)
		var refused *client.Error
		switch {
		case ctx.Err() != nil:
			if err == nil {
				attempts.Close()
			}
			return nil, nil
		case err == nil:
			return attempts, nil
		case errors.As(err, &refused) && refused.Status < http.StatusInternalServerError && refused.Status != http.StatusTooManyRequests:
			return nil, fmt.Errorf("tail: %w", err)
		case !told:
			told = true
			t.complain("no connection yet: %v; trying again until stopped", err)
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
			return nil, nil
		}
	}
}
