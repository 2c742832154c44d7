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
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// batchIngest accepts batches of events.
type batchIngest struct {
	intake   *intake.Intake
	bodies   *httpapi.Quota
	maxBody  int64
	problems *problem.Writer // completes the problems of single events
}

// post accepts up to godwit.MaxEventsPerBatch events in one transaction. It checks all events before it stores any.
func (h *batchIngest) post(w http.ResponseWriter, r *http.Request, c *management.Caller) error {
	if _, err := httpapi.ReadQuery(r.URL, httpapi.NoParameters); err != nil {
		return err
	}
	key := ""
	if idempotency.Present(r.Header) {
		var err error
		if key, err = h.intake.Key(r.Header, c.Tenant); err != nil {
			return err
		}
	}
	taken, err := h.bodies.AcquireBody(r, c.Tenant.ID, h.maxBody)
	if err != nil {
		return err
	}
	defer h.bodies.Release(c.Tenant.ID, taken)
	body, err := httpapi.ReadBody(w, r, h.maxBody)
	if err == nil {
		err = httpapi.CheckMediaType(r, body, jsonType)
	}
	if err != nil {
		return err
	}
	producer := intake.Caller(c)
	var whole *intake.Repeat // recognises the batch as one request; nil if each event has its own key
	if key != "" {
		whole = h.intake.ByBatchKey(producer, key, jsonType, body)
	}
	items, err := h.parse(r.Context(), producer, body, whole)
	if err != nil {
		return err
	}
	if whole != nil {
		return h.submitWhole(w, r, producer, items, whole)
	}
	return h.submitEach(w, r, producer, items)
}

// An item is an admitted event of a batch.
type item struct {
	admission intake.Admission
	repeat    *intake.Repeat // recognises the item by its own key
}

// submitWhole stores the batch under one key, entirely or not at all.
func (h *batchIngest) submitWhole(w http.ResponseWriter, r *http.Request, p intake.Producer, items []item, whole *intake.Repeat) error {
	sub := intake.Submission{
		Producer: p, Events: make([]intake.Admission, len(items)), Repeat: whole,
		Respond: func(events []godwit.Event, fanout []int) *godwit.StoredResponse {
			return &godwit.StoredResponse{Status: http.StatusAccepted, ContentType: jsonType, Body: wholeBody(events, fanout)}
		},
	}
	for i := range items {
		sub.Events[i] = items[i].admission
	}
	receipts, err := h.intake.Submit(r.Context(), sub)
	if err == nil {
		err = receipts[0].Err
	}
	switch {
	case err != nil:
		return err
	case receipts[0].Replayed != nil:
		idempotency.Replay(w, receipts[0].Replayed)
	default:
		writeJSON(w, http.StatusAccepted, wholeBody(receipts[0].Events, receipts[0].Fanout))
	}
	return nil
}

func wholeBody(events []godwit.Event, fanout []int) []byte {
	b := make([]byte, 0, 64+256*len(events))
	b = append(b, `{"items":[`...)
	for i := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendItem(b, i, "accepted", appendAccepted(nil, events[i].ID.String(), &events[i], fanout[i]))
	}
	return append(b, "]}\n"...)
}

// submitEach stores every event as a separate request in one transaction, so that each item's key is checked separately.
func (h *batchIngest) submitEach(w http.ResponseWriter, r *http.Request, p intake.Producer, items []item) error {
	subs := make([]intake.Submission, len(items))
	for i := range items {
		subs[i] = intake.Submission{
			Producer: p, Events: []intake.Admission{items[i].admission}, Repeat: items[i].repeat, Respond: acceptedResponse,
		}
	}
	receipts, err := h.intake.Submit(r.Context(), subs...)
	if err != nil {
		return err
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
			b = appendItem(b, i, "refused", h.refusal(r, w, rc.Err))
		case rc.Replayed != nil:
			b = appendItem(b, i, "replayed", bytes.TrimSpace(rc.Replayed.Body))
		default:
			b = appendItem(b, i, "accepted", appendAccepted(nil, rc.Events[0].ID.String(), &rc.Events[0], rc.Fanout[0]))
		}
	}
	writeJSON(w, status, append(b, "]}\n"...))
	return nil
}

// refusal renders the problem of one item as a member of that item.
func (h *batchIngest) refusal(r *http.Request, w http.ResponseWriter, err error) []byte {
	p := h.problems.Complete(r, w.Header().Get(problem.RequestIDHeader), err)
	return fmt.Appendf(nil, `{"problem":%s}`, bytes.TrimSpace(p.JSON()))
}

// appendItem joins an item's index and status with the members of its result. The result must be a non-empty object.
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

// parse reads {"events":[…]} and names every invalid event, up to a bound.
func (h *batchIngest) parse(ctx context.Context, p intake.Producer, body []byte, whole *intake.Repeat) ([]item, error) {
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
	return h.parseItems(ctx, p, raw, whole)
}

const maxBatchErrors = 20

func (h *batchIngest) parseItems(ctx context.Context, p intake.Producer, raw []json.RawMessage, whole *intake.Repeat) ([]item, error) {
	items := make([]item, 0, len(raw))
	keys := map[string]int{}
	var wrong *problem.Problem
	for i, text := range raw {
		it, err := h.parseItem(ctx, p, text, i, whole, keys)
		if err == nil {
			items = append(items, it)
			continue
		}
		var refusal *problem.Problem
		if !errors.As(err, &refusal) {
			return nil, err
		}
		if wrong == nil {
			wrong = refusal
		} else {
			wrong.Errors = append(wrong.Errors, refusal.Errors...)
		}
		if len(wrong.Errors) >= maxBatchErrors {
			break
		}
	}
	if wrong != nil {
		return nil, wrong
	}
	return items, nil
}

func (h *batchIngest) parseItem(ctx context.Context, p intake.Producer, raw json.RawMessage, i int, whole *intake.Repeat, keys map[string]int) (item, error) {
	prefix := fmt.Sprintf("events[%d].", i)
	env, err := parseEnvelope(prefix, raw)
	if err != nil {
		return item{}, err
	}
	if err := h.checkItemKey(p, prefix+"idempotency_key", env, i, whole != nil, keys); err != nil {
		return item{}, err
	}
	event, at, err := env.event(prefix)
	if err != nil {
		return item{}, err
	}
	it := item{repeat: h.intake.ByKey(p, event)}
	known := it.repeat
	if whole != nil {
		known = whole
	}
	event.Body = bytes.Clone(event.Body) // a waiting event must not keep the whole batch in memory
	if it.admission, err = h.intake.Admit(ctx, p, event, known); err != nil {
		return item{}, at.name(err)
	}
	return it, nil
}

// checkItemKey validates the key of an item. Keys must differ within the batch. If the batch has a key, its items must not
// have keys.
func (h *batchIngest) checkItemKey(p intake.Producer, field string, env *envelope, i int, oneKey bool, keys map[string]int) error {
	given := env.has["idempotency_key"]
	if oneKey {
		if given {
			return problem.Invalid.In(field, "cannot be given when the whole batch has an Idempotency-Key")
		}
		return nil
	}
	if err := h.intake.ItemKey(p.Tenant, env.IdempotencyKey, given); err != nil || !given {
		return problem.InField(field, err)
	}
	if first, twice := keys[env.IdempotencyKey]; twice {
		return problem.Invalid.In(field, "is that of events[%d] too: every event has a key of its own", first)
	}
	keys[env.IdempotencyKey] = i
	return nil
}
