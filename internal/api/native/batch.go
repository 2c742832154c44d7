package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// batchScope is the scope of a key that stands for a whole batch. It does not travel with the events: one key on many
// events would make receivers drop all but the first (EDS-DUP-6).
const batchScope = "POST /v1/events/batch"

// postBatch accepts up to godwit.MaxEventsPerBatch events in one transaction. All are checked before any is stored.
func (s *server) postBatch(w http.ResponseWriter, r *http.Request, c *management.Caller) {
	key := ""
	if idempotency.Present(r.Header) {
		var err error
		if key, err = s.cfg.Idempotency.Key(r.Header); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	taken, err := s.bodies.AcquireBody(r, c.Tenant.ID, s.cfg.MaxBatchBody)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer s.bodies.Release(c.Tenant.ID, taken)
	body, err := httpapi.ReadBody(w, r, s.cfg.MaxBatchBody)
	if err == nil {
		err = httpapi.CheckMediaType(r, body, jsonType)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	pubs, err := s.parseBatch(r.Context(), c, body, key != "")
	switch {
	case err == nil && key != "":
		s.submitWhole(w, r, c, key, body, pubs)
	case err == nil:
		s.submitEach(w, r, c, pubs)
	default:
		if key != "" {
			// A repeat of what was taken in gets that answer, whatever the tenant's catalogue says today.
			if resp := s.answered(r.Context(), httpapi.ScopeOf(c, batchScope).ID(key), s.batchFingerprint(body)); resp != nil {
				idempotency.Replay(w, resp)
				return
			}
		}
		s.fail(w, r, err)
	}
}

func (s *server) batchFingerprint(body []byte) [32]byte {
	return s.cfg.Idempotency.Fingerprint(idempotency.Payload{ContentType: jsonType, Body: body})
}

// submitWhole stores the batch under its one key, whole or not at all.
func (s *server) submitWhole(w http.ResponseWriter, r *http.Request, c *management.Caller, key string, body []byte, pubs []engine.Publication) {
	sub := engine.Submission{
		TenantID: c.Tenant.ID, Principal: c.Key.Principal, Events: pubs,
		Idempotency: &engine.Idempotency{
			ID:          httpapi.ScopeOf(c, batchScope).ID(key),
			Fingerprint: s.batchFingerprint(body),
			Respond: func(events []godwit.Event, fanout []int) *godwit.StoredResponse {
				return &godwit.StoredResponse{Status: http.StatusAccepted, ContentType: jsonType, Body: wholeBody(events, fanout)}
			},
		},
	}
	receipts, err := s.cfg.Engine.Submit(r.Context(), sub)
	if err == nil {
		err = receipts[0].Err
	}
	switch {
	case err != nil:
		s.fail(w, r, err)
	case receipts[0].Replayed != nil:
		idempotency.Replay(w, receipts[0].Replayed)
	default:
		writeJSON(w, http.StatusAccepted, wholeBody(receipts[0].Events, receipts[0].Fanout))
	}
}

func wholeBody(events []godwit.Event, fanout []int) []byte {
	b := make([]byte, 0, 64+256*len(events))
	b = append(b, `{"items":[`...)
	for i := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendItem(b, i, "accepted", appendAccepted(nil, &events[i], fanout[i]))
	}
	return append(b, "]}\n"...)
}

// submitEach stores every event as a request of its own in one transaction, so that each item's key counts by itself.
func (s *server) submitEach(w http.ResponseWriter, r *http.Request, c *management.Caller, pubs []engine.Publication) {
	subs := make([]engine.Submission, len(pubs))
	for i := range pubs {
		subs[i] = engine.Submission{TenantID: c.Tenant.ID, Principal: c.Key.Principal, Events: pubs[i : i+1 : i+1]}
		if pubs[i].Key != "" {
			subs[i].Idempotency = s.repeatable(c, &pubs[i])
		}
	}
	receipts, err := s.cfg.Engine.Submit(r.Context(), subs...)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	status := http.StatusAccepted
	b := make([]byte, 0, 64+256*len(receipts))
	b = append(b, `{"items":[`...)
	for i := range receipts {
		if i > 0 {
			b = append(b, ',')
		}
		switch rc := &receipts[i]; {
		case rc.Err != nil:
			status = http.StatusMultiStatus
			b = appendItem(b, i, "refused", s.refusal(r, w, rc.Err))
		case rc.Replayed != nil:
			b = appendItem(b, i, "replayed", bytes.TrimSpace(rc.Replayed.Body))
		default:
			b = appendItem(b, i, "accepted", appendAccepted(nil, &rc.Events[0], rc.Fanout[0]))
		}
	}
	writeJSON(w, status, append(b, "]}\n"...))
}

// refusal is the problem of one item, as the member of an item.
func (s *server) refusal(r *http.Request, w http.ResponseWriter, err error) []byte {
	p := s.cfg.Problems.Complete(r, w.Header().Get(problem.RequestIDHeader), err)
	return fmt.Appendf(nil, `{"problem":%s}`, bytes.TrimSpace(p.JSON()))
}

// appendItem joins an item's index and status with the members of its result, which is an object that is not empty.
func appendItem(b []byte, index int, status string, result []byte) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(index), 10)
	b = append(b, `,"status":"`...)
	b = append(b, status...)
	b = append(b, `",`...)
	return append(b, result[1:]...)
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonTypeValue
	h["Cache-Control"] = noStoreValue
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	w.Write(body)
}

// parseBatch reads {"events":[…]} and names every event that is wrong, up to a bound.
func (s *server) parseBatch(ctx context.Context, c *management.Caller, body []byte, oneKey bool) ([]engine.Publication, error) {
	var raw []json.RawMessage
	seen := false
	err := eachMember("", body, func(name string, value json.RawMessage) error {
		if name != "events" {
			return problem.InvalidRequest.In(httpapi.Clip(name), "is not a member of a batch")
		}
		if seen {
			return problem.InvalidRequest.In("events", "is given twice")
		}
		seen = true
		return decodeMember("events", value, &raw, "a list of events")
	})
	switch {
	case err != nil:
		return nil, err
	case len(raw) == 0:
		return nil, problem.InvalidRequest.In("events", "must hold at least one event")
	case len(raw) > godwit.MaxEventsPerBatch:
		return nil, problem.InvalidRequest.In("events", "must hold at most %d events", godwit.MaxEventsPerBatch)
	}
	return s.parseItems(ctx, c, raw, oneKey)
}

const maxBatchErrors = 20

func (s *server) parseItems(ctx context.Context, c *management.Caller, raw []json.RawMessage, oneKey bool) ([]engine.Publication, error) {
	pubs := make([]engine.Publication, 0, len(raw))
	keys := map[string]int{}
	var wrong *problem.Problem
	for i, item := range raw {
		prefix := fmt.Sprintf("events[%d].", i)
		pub, err := s.parseItem(prefix, item, i, oneKey, c.Tenant.RequireIdempotencyKey, keys)
		if err == nil {
			err = s.fits(ctx, c, prefix, false, pub)
		}
		if err == nil {
			pubs = append(pubs, *pub)
			continue
		}
		var p *problem.Problem
		if !errors.As(err, &p) {
			return nil, err
		}
		if wrong == nil {
			wrong = p
		} else {
			wrong.Errors = append(wrong.Errors, p.Errors...)
		}
		if len(wrong.Errors) >= maxBatchErrors {
			break
		}
	}
	if wrong != nil {
		return nil, wrong
	}
	return pubs, nil
}

func (s *server) parseItem(prefix string, raw json.RawMessage, i int, oneKey, needKey bool, keys map[string]int) (*engine.Publication, error) {
	env, err := parseEnvelope(prefix, raw)
	if err != nil {
		return nil, err
	}
	field := prefix + "idempotency_key"
	switch {
	case oneKey && env.has["idempotency_key"]:
		return nil, problem.Invalid.In(field, "cannot be given when the whole batch has an Idempotency-Key")
	case env.has["idempotency_key"]:
		if err := s.cfg.Idempotency.CheckKey(env.IdempotencyKey); err != nil {
			return nil, problem.InField(field, err)
		}
		if first, twice := keys[env.IdempotencyKey]; twice {
			return nil, problem.Invalid.In(field, "is that of events[%d] too: every event has a key of its own", first)
		}
		keys[env.IdempotencyKey] = i
	case needKey && !oneKey:
		return nil, problem.KeyMissing.In(field, "is required by this tenant, or an Idempotency-Key for the whole batch")
	}
	pub, err := env.publication(prefix, s.cfg.MaxBody)
	if err == nil {
		pub.Body = bytes.Clone(pub.Body) // one event that waits must not keep the whole batch in memory
	}
	return pub, err
}
