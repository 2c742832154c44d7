package native

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// ExportedDeadLetter is one line of the export.
type ExportedDeadLetter struct {
	DeadLetter
	BodyBase64 string  `json:"body_base64" doc:"The payload, byte for byte"`
	BodyText   *string `json:"body_text,omitempty" doc:"The payload as text, where it is valid UTF-8"`
}

// deadLetterExport streams dead letters.
type deadLetterExport struct {
	store interface {
		ListDeadLetters(ctx context.Context, f store.DeadLetterFilter, p store.Page) ([]godwit.DeadLetter, error)
	}
	finder  endpointFinder
	running *httpapi.Quota
	stall   time.Duration // how long a client may read nothing
	page    int           // dead letters in memory at once
	api     *httpapi.API
	clock   clock.Clock
	log     *slog.Logger
}

// exportPage returns how many dead letters are in memory at once: fewer if payloads may be large.
func exportPage(maxPayload int64) int { return int(max(1, min(50, exportPageMemory/maxPayload))) }

// serve streams dead letters with their payloads, one JSON document a line. If it fails half-way it closes the connection,
// so that the client does not take a partial export for a complete one.
func (x *deadLetterExport) serve(w http.ResponseWriter, r *http.Request, c *management.Caller) error {
	f, err := x.filter(r, c)
	if err != nil {
		return err
	}
	if err := x.running.Acquire(c.Tenant.ID, "exports"); err != nil {
		return err
	}
	defer x.running.Release(c.Tenant.ID, 1)
	ctx, stop := x.api.While(r, payloadAccess, x.clock, nil)
	defer stop()
	letters, err := x.store.ListDeadLetters(ctx, f, store.Page{Limit: x.page})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="dead-letters.ndjson"`)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	out := newReader(w, x.stall)
	defer out.end()
	for len(letters) > 0 {
		if x.write(out, r, letters) != nil {
			return nil // the client has disconnected
		}
		last := letters[len(letters)-1].Delivery.ID
		if letters, err = x.store.ListDeadLetters(ctx, f, store.Page{After: last, Limit: x.page}); err != nil {
			x.log.Warn("dead letter export cut short", "error", err)
			panic(http.ErrAbortHandler)
		}
	}
	return nil
}

// filter reads the dead letters that the query selects.
func (x *deadLetterExport) filter(r *http.Request, c *management.Caller) (store.DeadLetterFilter, error) {
	query, err := httpapi.ReadQuery(r.URL, exportParameters)
	if err != nil {
		return store.DeadLetterFilter{}, err
	}
	chosen, err := exportFilter(query)
	if err != nil {
		return store.DeadLetterFilter{}, err
	}
	f, err := chosen.resolve(r.Context(), c, x.finder)
	f.WithBody = true
	return f, err
}

// write writes a page of the export as long as the client reads, and may read.
func (x *deadLetterExport) write(out *reader, r *http.Request, letters []godwit.DeadLetter) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	for i := range letters {
		if err := x.api.Recheck(r, payloadAccess); err != nil {
			x.log.Info("dead letter export refused while it ran", "error", err)
			panic(http.ErrAbortHandler)
		}
		line.Reset()
		if err := enc.Encode(exported(&letters[i])); err != nil {
			x.log.Error("dead letter cannot be exported", "error", err)
			panic(http.ErrAbortHandler)
		}
		if err := out.write(line.Bytes()); err != nil {
			return err
		}
	}
	return out.flush()
}

func exported(d *godwit.DeadLetter) ExportedDeadLetter {
	v := ExportedDeadLetter{DeadLetter: deadLetterView(d), BodyBase64: base64Of(d.Event.Body)}
	if utf8.Valid(d.Event.Body) {
		text := string(d.Event.Body)
		v.BodyText = &text
	}
	return v
}

// exportParameters are the query parameters of an export.
var exportParameters = []string{"endpoint", "type", "status", "reason", "since", "until", "replayed"}

func exportFilter(q url.Values) (deadLetterFilter, error) {
	f := deadLetterFilter{Endpoint: q.Get("endpoint"), Type: q.Get("type"), Reason: q.Get("reason"), Status: q.Get("status"), Replayed: q.Get("replayed") == "true"}
	if q.Has("status") && f.Status != string(godwit.DeliveryTerminal) && f.Status != string(godwit.DeliveryExhausted) {
		return f, problem.InvalidRequest.In("status", "must be terminal or exhausted")
	}
	if q.Has("replayed") && !f.Replayed && q.Get("replayed") != "false" {
		return f, problem.InvalidRequest.In("replayed", "must be true or false")
	}
	var err error
	if f.Since, err = timeParam(q, "since"); err != nil {
		return f, err
	}
	f.Until, err = timeParam(q, "until")
	return f, err
}

// timeParam reads a time; an absent parameter gives the zero time.
func timeParam(q url.Values, name string) (time.Time, error) {
	if !q.Has(name) {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, q.Get(name))
	if err != nil {
		return t, problem.InvalidRequest.In(name, "must be a time as in 2026-01-02T15:04:05Z")
	}
	return t, nil
}
