package native

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/intake"
)

// instant accepts events without storing them, so that a benchmark measures only the handler.
type instant struct{ intake.Engine }

func (instant) Submit(_ context.Context, subs ...engine.Submission) ([]engine.Receipt, error) {
	receipts := make([]engine.Receipt, len(subs))
	for i, s := range subs {
		p := &s.Events[0]
		receipts[i] = engine.Receipt{
			Events: []godwit.Event{{ID: godwit.EventID{1}, Type: p.Type, Key: "8e03978e-40d5-43e8-bc93-6894a57f9324", Body: p.Body, CreatedAt: time.Unix(1, 0)}},
			Fanout: []int{1},
		}
		if s.Idempotency != nil {
			s.Idempotency.Respond(receipts[i].Events, receipts[i].Fanout)
		}
	}
	return receipts, nil
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func BenchmarkIngest(b *testing.B) {
	h := startHarness(b, harnessOptions{})
	h.events.Engine = instant{}
	events, err := intake.New(h.events)
	must(b, err)
	h.api.handlers.event.intake = events
	payload := bytes.Repeat([]byte("x"), 1024)
	envelope := []byte(`{"type":"order.created","data":"` + string(payload[:1000]) + `"}`)
	for name, c := range map[string]struct {
		path string
		key  string
		body []byte
	}{
		"raw":      {"/v1/events?type=order.created", "", payload},
		"keyed":    {"/v1/events?type=order.created", key1, payload},
		"envelope": {"/v1/events", "", envelope},
	} {
		b.Run(name, func(b *testing.B) {
			r, err := http.NewRequest("POST", c.path, nil)
			must(b, err)
			r.Header.Set("Authorization", "Bearer "+h.token)
			r.Header.Set("Content-Type", "application/json")
			if c.key != "" {
				r.Header.Set("Idempotency-Key", c.key)
			}
			r.ContentLength = int64(len(c.body))
			body := bytes.NewReader(c.body)
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(c.body)
				r.Body = io.NopCloser(body)
				h.api.ServeHTTP(&discard{http.Header{}}, r)
			}
		})
	}
}
