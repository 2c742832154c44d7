package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/client"
)

// samples generates the traffic of `godwit dev`: an endpoint that fails now and then, and events for it.
type samples struct {
	client   *client.Client
	server   *http.Server
	requests atomic.Int64
}

func startSamples(ctx context.Context, c *client.Client) (*samples, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the sample endpoint: %w", err)
	}
	s := &samples{client: c}
	s.server = &http.Server{Handler: http.HandlerFunc(s.receive), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(l) }()
	_, err = c.CreateEndpoint(ctx, client.NewEndpoint{
		URL: "http://" + l.Addr().String() + "/sample", Description: "sample endpoint of godwit dev", Patterns: []string{"sample.*"},
	})
	if err != nil {
		s.close()
		return nil, fmt.Errorf("register the sample endpoint: %w", err)
	}
	return s, nil
}

func (s *samples) close() { s.server.Close() }

// receive acts like a real receiver: it mostly succeeds, is sometimes busy, and sometimes drops the connection.
func (s *samples) receive(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	mood := rand.IntN(100)
	if s.requests.Add(1) == 2 {
		mood = 20 // so that the user sees a failure soon
	}
	switch {
	case mood < 8:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	case mood < 12:
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
	case mood < 25:
		w.WriteHeader(http.StatusServiceUnavailable)
	case mood < 30:
		panic(http.ErrAbortHandler) // the connection drops
	default:
		w.WriteHeader(http.StatusOK)
	}
}

// post publishes a sample event every second until ctx ends.
func (s *samples) post(ctx context.Context) {
	types := []string{"sample.order.created", "sample.order.paid", "sample.order.shipped", "sample.user.joined"}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		body, err := json.Marshal(map[string]any{"sample": n, "amount": rand.IntN(10000), "note": "posted by godwit dev"})
		if err != nil {
			return
		}
		_, err = s.client.Publish(ctx, client.Event{Type: types[n%len(types)], Body: body})
		var refused *client.Error
		if err != nil && (!errors.As(err, &refused) || refused.Status == http.StatusUnauthorized) {
			return // the server has stopped, or the key was deleted
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
