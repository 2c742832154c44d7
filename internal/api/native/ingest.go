package native

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/cloudevents"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// EventTypeHeader names the type of an event whose body is the payload, if the URL does not.
const EventTypeHeader = "Godwit-Event-Type"

const jsonType = "application/json"

// Shared header values; net/http does not change them.
var (
	jsonTypeValue = []string{jsonType}
	noStoreValue  = []string{"no-store"}
)

// eventIngest accepts single events.
type eventIngest struct {
	intake *intake.Intake
	bodies *httpapi.Quota
}

// post accepts one event. The body is the payload if the URL or a header names the type, otherwise an envelope.
func (h *eventIngest) post(w http.ResponseWriter, r *http.Request, c *management.Caller) error {
	key, err := h.intake.Key(r.Header, c.Tenant)
	if err != nil {
		return err
	}
	taken, err := h.bodies.AcquireBody(r, c.Tenant.ID, h.maxEnvelope())
	if err != nil {
		return err
	}
	defer h.bodies.Release(c.Tenant.ID, taken)
	event, at, err := h.readEvent(w, r)
	if err != nil {
		return err
	}
	event.Key = key
	producer := intake.Caller(c)
	repeat := h.intake.ByKey(producer, event)
	admission, err := h.intake.Admit(r.Context(), producer, event, repeat)
	if err != nil {
		return at.name(err)
	}
	return h.submit(w, r, intake.Submission{Producer: producer, Events: []intake.Admission{admission}, Repeat: repeat})
}

func (h *eventIngest) submit(w http.ResponseWriter, r *http.Request, sub intake.Submission) error {
	var resp *godwit.StoredResponse
	sub.Respond = func(events []godwit.Event, fanout []int) *godwit.StoredResponse {
		resp = acceptedResponse(events, fanout)
		return resp
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
		return nil
	case resp == nil: // without a key no response is stored
		resp = acceptedResponse(receipts[0].Events, receipts[0].Fanout)
	}
	header := w.Header()
	header["Content-Type"] = jsonTypeValue
	header["Cache-Control"] = noStoreValue
	header["Location"] = []string{resp.Location}
	header["Content-Length"] = []string{strconv.Itoa(len(resp.Body))}
	w.WriteHeader(resp.Status)
	w.Write(resp.Body)
	return nil
}

// A place is the position of an event in a request, so that a refusal uses the client's names of the fields.
type place struct {
	prefix  string // prefix of the event's members, as in "events[3]."
	payload string // the member that holds the payload; empty if the body is the payload
}

// name renames the fields of a refusal by the intake to this API's names.
func (at place) name(err error) error {
	var p *problem.Problem
	if !errors.As(err, &p) {
		return err
	}
	return p.Renamed(func(field string) string {
		inside, isData := strings.CutPrefix(field, "data")
		switch {
		case !isData:
			return at.prefix + field
		case inside == "": // the payload as a whole
			return at.prefix + cmp.Or(at.payload, "body")
		case at.payload == "":
			return strings.TrimPrefix(inside, ".")
		}
		return at.prefix + field
	})
}

// acceptedResponse builds the response to one event.
func acceptedResponse(events []godwit.Event, fanout []int) *godwit.StoredResponse {
	id := events[0].ID.String()
	body := make([]byte, 0, 192+len(events[0].Key))
	body = appendAccepted(body, id, &events[0], fanout[0])
	return &godwit.StoredResponse{
		Status: http.StatusAccepted, ContentType: jsonType, Location: eventPath + id, Body: append(body, '\n'),
	}
}

const eventPath = "/v1/events/"

func eventLocation(id godwit.EventID) string { return eventPath + id.String() }

// timeFormat has the precision of the stores, so that every response about an event shows the same time.
const timeFormat = "2006-01-02T15:04:05.000000Z"

func appendAccepted(b []byte, id string, e *godwit.Event, deliveries int) []byte {
	b = append(b, `{"id":"`...)
	b = append(b, id...)
	b = append(b, `","idempotency_key":"`...)
	b = appendKey(b, e.Key)
	b = append(b, `","deliveries":`...)
	b = strconv.AppendInt(b, int64(deliveries), 10)
	b = append(b, `,"created_at":"`...)
	b = e.CreatedAt.UTC().AppendFormat(b, timeFormat)
	return append(b, `"}`...)
}

// appendKey escapes a key for JSON. Keys are printable ASCII, so only two characters need escapes.
func appendKey(b []byte, key string) []byte {
	for i := range len(key) {
		if key[i] == '"' || key[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, key[i])
	}
	return b
}

// Accepted is the response to an event.
type Accepted struct {
	ID             string     `json:"id" example:"evt_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f" doc:"Id of the event; of the broadcast, if the request names several tenants"`
	IdempotencyKey string     `json:"idempotency_key" doc:"Goes with every attempt to deliver the event. Each event of a broadcast has a key of its own"`
	Deliveries     int        `json:"deliveries" doc:"How many endpoints it goes to; for a broadcast so far"`
	CreatedAt      time.Time  `json:"created_at"`
	Broadcast      *Broadcast `json:"broadcast,omitempty" doc:"If the request names several tenants, or all"`
}

func acceptedView(e *godwit.Event, deliveries int) Accepted {
	return Accepted{ID: e.ID.String(), IdempotencyKey: e.Key, Deliveries: deliveries, CreatedAt: e.CreatedAt.UTC().Truncate(time.Microsecond)}
}

// readEvent reads the event from the request, and returns its place in it.
func (h *eventIngest) readEvent(w http.ResponseWriter, r *http.Request) (*intake.Event, place, error) {
	eventType, attributes, err := outside(r)
	if err != nil {
		return nil, place{}, err
	}
	isCloudEvent := cloudevents.Present(r.Header)
	if eventType == "" && !isCloudEvent {
		if len(attributes) > 0 {
			return nil, place{}, problem.InvalidRequest.In("type", "must come in the query too when attributes do")
		}
		return h.readEnvelope(w, r)
	}
	event := &intake.Event{Type: strings.Clone(eventType), Attributes: attributes}
	if event.ContentType, err = intake.MediaType(r.Header); err != nil {
		return nil, place{}, err
	}
	if isCloudEvent {
		at, err := h.readCloudEvent(w, r, event)
		return event, at, err
	}
	if err := intake.CheckType(event.Type); err != nil { // before the body is read
		return nil, place{}, err
	}
	event.Body, err = httpapi.ReadBody(w, r, h.intake.MaxPayload())
	return event, place{}, err
}

// readCloudEvent completes an event that is a CloudEvent. In structured mode its body is forwarded unchanged; in binary mode
// its attributes are forwarded as header fields. Its type becomes the event's type, unless the URL names another.
func (h *eventIngest) readCloudEvent(w http.ResponseWriter, r *http.Request, event *intake.Event) (at place, err error) {
	if event.Body, err = httpapi.ReadBody(w, r, h.intake.MaxPayload()); err != nil {
		return at, err
	}
	ce, wrong := cloudevents.Read(r.Header, event.Body)
	if wrong != nil {
		return at, problem.Invalid.In(wrong.Field, "%s", wrong.Detail)
	}
	event.KeptHeaders = ce.Headers
	if event.Payload, event.PayloadType = ce.Data, ce.DataType; ce.Data != nil {
		at.payload = "data"
	}
	if event.Type == "" {
		event.Type = godwit.EventTypeFrom(ce.Type)
	}
	return at, nil
}

// outside returns the type and attributes that the URL and the header give.
func outside(r *http.Request) (eventType string, attributes map[string]string, err error) {
	if header := r.Header[EventTypeHeader]; len(header) == 1 {
		eventType = header[0]
	} else if len(header) > 1 {
		return "", nil, problem.InvalidRequest.In(EventTypeHeader, "must be given once")
	}
	if r.URL.RawQuery == "" {
		return eventType, nil, nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", nil, problem.InvalidRequest.In("query", "is not a valid query string")
	}
	for name, values := range query {
		if len(values) > 1 {
			return "", nil, problem.InvalidRequest.In(httpapi.Clip(name), "must be given once")
		}
		attribute, isAttribute := strings.CutPrefix(name, "attr.")
		switch {
		case isAttribute:
			if attributes == nil {
				attributes = map[string]string{}
			}
			attributes[attribute] = values[0]
		case name != "type":
			return "", nil, problem.InvalidRequest.In(httpapi.Clip(name), "is not a parameter of this operation: it takes type and attr.NAME")
		case eventType != "" && eventType != values[0]:
			return "", nil, problem.InvalidRequest.In("type", "differs from the header %s", EventTypeHeader)
		case values[0] == "":
			return "", nil, problem.Invalid.In("type", "must not be empty")
		default:
			eventType = values[0]
		}
	}
	return eventType, attributes, nil
}
