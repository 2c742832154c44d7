package cybercube

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"regexp"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// envelopeRoom is the space that a request may use for members other than data.
const envelopeRoom = 4 << 10

// maxAhead is how far a producer's clock may be ahead of the server's.
const maxAhead = 5 * time.Minute

var ownID = regexp.MustCompile(`^evt_[A-Za-z0-9]{26}$`)

// A posting is an event as its producer sent it.
type posting struct {
	id        string // the producer's id; empty if it sent none
	eventType string
	data      json.RawMessage
	object    json.RawMessage
	livemode  bool
	createdAt time.Time // to the second; zero if the producer sent none
}

// eventIngest accepts events.
type eventIngest struct {
	intake       *intake.Intake
	store        eventReader
	api          *httpapi.API
	now          func() time.Time
	unknownTypes bool // accepts types that the standard does not list
}

// post accepts an event (CCW-API-28).
func (h *eventIngest) post(c *httpapi.Call) error {
	key, err := h.intake.Key(c.R.Header, c.Caller.Tenant)
	if err != nil {
		return err
	}
	p, err := h.readPosting(c)
	if err != nil {
		return err
	}
	if p.id == "" {
		return h.submit(c, p, key)
	}
	if key == "" {
		return h.submitOnce(c, p, "")
	}
	h.api.Guarded(c, func(c *httpapi.Call) error { return h.submitOnce(c, p, key) })
	return nil
}

// readPosting validates the whole event before anything is stored (CCW-EVT-27).
func (h *eventIngest) readPosting(c *httpapi.Call) (*posting, error) {
	f, err := readForm(c.Body, "id", "type", "api_version", "created_at", "data", "account_id", "livemode")
	if err != nil {
		return nil, err
	}
	if len(c.Body) == 0 {
		return nil, problem.InvalidRequest.In("body", "must be an event")
	}
	f.errs = nil // the catalogue reports the same errors
	for _, wrong := range catalogue.Cybercube().Check(c.Body) {
		f.wrong(cmp.Or(wrong.Field, "body"), "%s", wrong.Detail)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	p := &posting{id: f.text("id"), eventType: f.text("type"), data: f.members["data"], livemode: !c.Caller.Tenant.Test, createdAt: f.time("created_at").Truncate(time.Second)}
	if f.has("livemode") {
		p.livemode = f.bool("livemode")
	}
	h.check(c, f, p)
	return p, f.err()
}

// check applies the rules that a schema cannot express.
func (h *eventIngest) check(c *httpapi.Call, f *form, p *posting) {
	if f.has("id") && !ownID.MatchString(p.id) {
		f.wrong("id", "must be evt_ followed by 26 letters and digits")
	}
	if !h.unknownTypes && !catalogue.Cybercube().Has(p.eventType) {
		f.wrong("type", "is not in the catalogue of the standard")
	}
	if !p.createdAt.IsZero() && p.createdAt.After(h.now().Add(maxAhead)) {
		f.wrong("created_at", "must not be in the future")
	}
	// The token determines the account, never the body (CCW-API-1). If the body names an account, it must be the same one.
	if f.has("account_id") && f.text("account_id") != accountID(c.Caller.Tenant) {
		f.wrong("account_id", "is not the account of the token")
	}
	var data struct {
		Object   json.RawMessage            `json:"object"`
		Previous map[string]json.RawMessage `json:"previous_attributes"`
	}
	if json.Unmarshal(p.data, &data) != nil {
		f.wrong("data", "must be an object")
		return
	}
	p.object = data.Object
	for name := range objectOf(p.data) {
		if name != "object" && name != "previous_attributes" {
			f.wrong("data."+httpapi.Clip(name), "is not a member that is known")
		}
	}
	object := objectOf(p.object)
	for name, old := range data.Previous {
		if now, there := object[name]; there && sameJSON(old, now) {
			f.wrong("data.previous_attributes."+httpapi.Clip(name), "has not changed: it holds the old values of changed members only")
		}
	}
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// event builds the event that is stored. Its body is the complete envelope, so that its bytes do not depend on when, or by
// which version, it is sent (CCW-EVT-26).
func event(c *httpapi.Call, p *posting, key string) *intake.Event {
	return &intake.Event{
		Type: p.eventType, ContentType: jsonType, Key: key, Format: godwit.FormatCybercube,
		SourceID: p.id, OccurredAt: p.createdAt, Attributes: attributesOf(p.object, p.livemode),
		Payload: p.data, Received: c.Body, ReceivedType: c.R.Header.Get("Content-Type"),
		Compose: compose(c.Caller.Tenant, p),
	}
}

// compose returns a function that writes the envelope once the event has its id and time.
func compose(t *godwit.Tenant, p *posting) func(*godwit.Event) {
	return func(event *godwit.Event) {
		if event.OccurredAt.IsZero() {
			event.OccurredAt = event.CreatedAt.Truncate(time.Second)
		}
		event.Body = envelope(t, p, profile.CybercubeEventID(event), event.OccurredAt)
	}
}

func envelope(t *godwit.Tenant, p *posting, id string, at time.Time) []byte {
	return profile.CybercubeEnvelope(profile.CybercubeEvent{
		ID: id, Type: p.eventType, CreatedAt: at, Data: p.data, Account: t.Code, Livemode: p.livemode,
	})
}

// submit stores an event without an id of its producer; the server assigns one.
func (h *eventIngest) submit(c *httpapi.Call, p *posting, key string) error {
	e := event(c, p, key)
	return h.save(c, e, h.intake.ByKey(intake.Caller(c.Caller), e))
}

// submitOnce stores an event with its producer's id, unless that id is stored already (CCW-EVT-14).
func (h *eventIngest) submitOnce(c *httpapi.Call, p *posting, key string) error {
	known, err := h.repeated(c, p)
	if err != nil || known {
		return err
	}
	e := event(c, p, key)
	err = h.save(c, e, h.intake.ByProducerID(intake.Caller(c.Caller), origin, p.id, e))
	if errors.Is(err, engine.ErrKeyReused) {
		return errOtherEvent
	}
	return err
}

var errOtherEvent = problem.Conflict.In("id", "is the id of another event")

// repeated answers a producer that repeats an event under the id that the server assigned.
func (h *eventIngest) repeated(c *httpapi.Call, p *posting) (bool, error) {
	id, err := godwit.ParseEventBase32(p.id[len("evt_"):])
	if err != nil {
		return false, nil
	}
	event, err := h.store.Event(c.R.Context(), c.Tenant(), id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	at := p.createdAt
	if at.IsZero() {
		at = event.Time()
	}
	name := profile.CybercubeEventID(event)
	if event.Format != godwit.FormatCybercube || !bytes.Equal(event.Body, envelope(c.Caller.Tenant, p, name, at)) {
		return false, errOtherEvent
	}
	return true, answer(c, http.StatusAccepted, acceptedView{ID: name})
}

func (h *eventIngest) save(c *httpapi.Call, event *intake.Event, repeat *intake.Repeat) error {
	producer := intake.Caller(c.Caller)
	admission, err := h.intake.Admit(c.R.Context(), producer, event, repeat)
	if err != nil {
		return err
	}
	receipts, err := h.intake.Submit(c.R.Context(), intake.Submission{
		Producer: producer, Events: []intake.Admission{admission}, Repeat: repeat, Respond: accepted,
	})
	if err == nil {
		err = receipts[0].Err
	}
	if err != nil {
		return err
	}
	resp := receipts[0].Replayed
	if resp != nil {
		c.W.Header().Set(idempotency.ReplayedHeader, "true")
	} else {
		resp = accepted(receipts[0].Events, receipts[0].Fanout)
	}
	c.W.Header().Set("Content-Type", resp.ContentType)
	c.W.WriteHeader(resp.Status)
	c.W.Write(resp.Body)
	return nil
}

type acceptedView struct {
	ID string `json:"id"`
}

// accepted builds the response to an accepted event.
func accepted(events []godwit.Event, _ []int) *godwit.StoredResponse {
	return &godwit.StoredResponse{
		Status: http.StatusAccepted, ContentType: jsonType,
		Body: encode(data[acceptedView]{acceptedView{ID: profile.CybercubeEventID(&events[0])}}),
	}
}
