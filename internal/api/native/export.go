package native

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
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

// exportPage returns how many dead letters are in memory at once: fewer if payloads may be large.
func (s *server) exportPage() int {
	return int(max(1, min(50, exportPageMemory/s.cfg.Intake.MaxPayload())))
}

// exportDeadLetters streams dead letters with their payloads, one JSON document a line. If it fails half-way it closes the
// connection, so that the client does not take a partial export for a complete one.
func (s *server) exportDeadLetters(w http.ResponseWriter, r *http.Request, c *management.Caller) {
	filter, err := exportFilter(r.URL.Query())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	f, err := s.deadLetterFilter(r.Context(), c, filter)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if err := s.exports.Acquire(c.Tenant.ID, "exports"); err != nil {
		s.fail(w, r, err)
		return
	}
	defer s.exports.Release(c.Tenant.ID, 1)
	f.WithBody = true
	letters, err := s.cfg.Store.ListDeadLetters(r.Context(), f, store.Page{Limit: s.exportPage()})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := s.toReader(w) // writes as long as the client reads
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="dead-letters.ndjson"`)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	defer out.end()
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	for len(letters) > 0 {
		for i := range letters {
			line.Reset()
			if err := enc.Encode(exported(&letters[i])); err != nil {
				s.cfg.Log.Error("dead letter cannot be exported", "error", err)
				panic(http.ErrAbortHandler)
			}
			if out.write(line.Bytes()) != nil {
				return // the client has disconnected
			}
		}
		if out.flush() != nil {
			return
		}
		last := letters[len(letters)-1].Delivery.ID
		if letters, err = s.cfg.Store.ListDeadLetters(r.Context(), f, store.Page{After: last, Limit: s.exportPage()}); err != nil {
			s.cfg.Log.Warn("dead letter export cut short", "error", err)
			panic(http.ErrAbortHandler)
		}
	}
}

func exported(d *godwit.DeadLetter) ExportedDeadLetter {
	v := ExportedDeadLetter{DeadLetter: deadLetterView(d), BodyBase64: base64Of(d.Event.Body)}
	if utf8.Valid(d.Event.Body) {
		text := string(d.Event.Body)
		v.BodyText = &text
	}
	return v
}

func exportFilter(q url.Values) (f deadLetterFilter, err error) {
	for name, values := range q {
		if len(values) > 1 {
			return f, problem.InvalidRequest.In(httpapi.Clip(name), "must be given once")
		}
		switch v := values[0]; name {
		case "endpoint":
			f.Endpoint = v
		case "type":
			f.Type = v
		case "reason":
			f.Reason = v
		case "status":
			if f.Status = v; v != string(godwit.DeliveryTerminal) && v != string(godwit.DeliveryExhausted) {
				return f, problem.InvalidRequest.In(name, "must be terminal or exhausted")
			}
		case "replayed":
			if f.Replayed = v == "true"; v != "true" && v != "false" {
				return f, problem.InvalidRequest.In(name, "must be true or false")
			}
		case "since":
			f.Since, err = timeParam(name, v)
		case "until":
			f.Until, err = timeParam(name, v)
		default:
			err = problem.InvalidRequest.In(httpapi.Clip(name), "is not a parameter of this operation")
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func timeParam(name, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, problem.InvalidRequest.In(name, "must be a time as in 2026-01-02T15:04:05Z")
	}
	return t, nil
}
