package native

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/cloudevents"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// EventTypeHeader names the type of an event that is posted as it is, where the URL does not.
const EventTypeHeader = "Godwit-Event-Type"

// eventScope is the scope of a key that travels with an event, however the event was posted: the same key on another
// ingest route is the same key.
const eventScope = "events"

const jsonType = "application/json"

// Shared header values: net/http does not change them.
var (
	jsonTypeValue = []string{jsonType}
	noStoreValue  = []string{"no-store"}
)

// postEvent accepts one event: as it is, when its type comes with the URL or in a header, else in an envelope.
func (s *server) postEvent(w http.ResponseWriter, r *http.Request, c *management.Caller) {
	key, err := s.eventKey(r, c)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	taken, err := s.bodies.AcquireBody(r, c.Tenant.ID, s.maxEnvelope())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer s.bodies.Release(c.Tenant.ID, taken)
	pub, raw, err := s.readEvent(w, r)
	if err == nil {
		pub.Key = key
		err = s.fits(r.Context(), c, "", raw, pub)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.submitOne(w, r, c, pub)
}

// eventKey is the key of the request; "" when it has none and needs none (decision 15).
func (s *server) eventKey(r *http.Request, c *management.Caller) (string, error) {
	if !idempotency.Present(r.Header) && !c.Tenant.RequireIdempotencyKey {
		return "", nil
	}
	return s.cfg.Idempotency.Key(r.Header)
}

func (s *server) submitOne(w http.ResponseWriter, r *http.Request, c *management.Caller, pub *engine.Publication) {
	var resp *godwit.StoredResponse
	sub := engine.Submission{TenantID: c.Tenant.ID, Principal: c.Key.Principal, Events: []engine.Publication{*pub}}
	if pub.Key != "" {
		sub.Idempotency = s.repeatable(c, pub)
		build := sub.Idempotency.Respond
		sub.Idempotency.Respond = func(events []godwit.Event, fanout []int) *godwit.StoredResponse {
			resp = build(events, fanout)
			return resp
		}
	}
	receipts, err := s.cfg.Engine.Submit(r.Context(), sub)
	if err == nil {
		err = receipts[0].Err
	}
	switch {
	case err != nil:
		s.fail(w, r, err)
		return
	case receipts[0].Replayed != nil:
		idempotency.Replay(w, receipts[0].Replayed)
		return
	case resp == nil:
		resp = acceptedResponse(receipts[0].Events, receipts[0].Fanout)
	}
	h := w.Header()
	h["Content-Type"] = jsonTypeValue
	h["Cache-Control"] = noStoreValue
	h["Location"] = []string{resp.Location}
	h["Content-Length"] = []string{strconv.Itoa(len(resp.Body))}
	w.WriteHeader(resp.Status)
	w.Write(resp.Body)
}

// repeatable makes the submission of one event with a key known by that key.
func (s *server) repeatable(c *management.Caller, pub *engine.Publication) *engine.Idempotency {
	return &engine.Idempotency{
		ID: httpapi.ScopeOf(c, eventScope).ID(pub.Key),
		Fingerprint: s.cfg.Idempotency.Fingerprint(idempotency.Payload{
			ContentType: pub.ContentType, Query: selection(pub), Body: pub.Body,
		}),
		Respond: acceptedResponse,
	}
}

// selection is what decides who gets an event, in one form whichever way it was given.
func selection(pub *engine.Publication) string {
	if len(pub.Attributes) == 0 {
		return pub.Type
	}
	names := make([]string, 0, len(pub.Attributes))
	for name := range pub.Attributes {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString(pub.Type)
	for _, name := range names {
		b.WriteString("\n" + name + "=" + pub.Attributes[name]) // neither part can hold a line feed
	}
	return b.String()
}

// acceptedResponse is the answer to one event.
func acceptedResponse(events []godwit.Event, fanout []int) *godwit.StoredResponse {
	body := make([]byte, 0, 192+len(events[0].Key))
	body = appendAccepted(body, &events[0], fanout[0])
	return &godwit.StoredResponse{
		Status: http.StatusAccepted, ContentType: jsonType, Location: eventLocation(events[0].ID), Body: append(body, '\n'),
	}
}

func eventLocation(id godwit.EventID) string { return "/v1/events/" + id.String() }

// timeFormat has the precision of the stores, so that every answer about an event tells one time.
const timeFormat = "2006-01-02T15:04:05.000000Z"

func appendAccepted(b []byte, e *godwit.Event, deliveries int) []byte {
	b = append(b, `{"id":"`...)
	b = append(b, e.ID.String()...)
	b = append(b, `","idempotency_key":"`...)
	b = appendKey(b, e.Key)
	b = append(b, `","deliveries":`...)
	b = strconv.AppendInt(b, int64(deliveries), 10)
	b = append(b, `,"created_at":"`...)
	b = e.CreatedAt.UTC().AppendFormat(b, timeFormat)
	return append(b, `"}`...)
}

// appendKey escapes a key for JSON: it is printable ASCII, so only two characters need it.
func appendKey(b []byte, key string) []byte {
	for i := range len(key) {
		if key[i] == '"' || key[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, key[i])
	}
	return b
}

// Accepted is the answer to an event.
type Accepted struct {
	ID             string    `json:"id" example:"evt_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	IdempotencyKey string    `json:"idempotency_key" doc:"Goes with every attempt to deliver the event"`
	Deliveries     int       `json:"deliveries" doc:"How many endpoints it goes to"`
	CreatedAt      time.Time `json:"created_at"`
}

func acceptedView(e *godwit.Event, deliveries int) Accepted {
	return Accepted{ID: e.ID.String(), IdempotencyKey: e.Key, Deliveries: deliveries, CreatedAt: e.CreatedAt.UTC().Truncate(time.Microsecond)}
}

// readEvent reads the event out of the request, and says whether the body was the payload as it is.
func (s *server) readEvent(w http.ResponseWriter, r *http.Request) (pub *engine.Publication, raw bool, err error) {
	eventType, attributes, err := outside(r)
	if err != nil {
		return nil, false, err
	}
	told := cloudevents.Present(r.Header)
	if eventType == "" && !told {
		if len(attributes) > 0 {
			return nil, false, problem.InvalidRequest.In("type", "must come in the query too when attributes do")
		}
		pub, err = s.readEnvelope(w, r)
		return pub, false, err
	}
	pub = &engine.Publication{Type: strings.Clone(eventType), Attributes: attributes}
	if pub.ContentType, err = mediaType(r); err != nil {
		return nil, true, err
	}
	if told {
		return pub, true, s.readCloudEvent(w, r, pub)
	}
	if err := checkPublication("", pub); err != nil {
		return nil, true, err
	}
	pub.Body, err = httpapi.ReadBody(w, r, s.cfg.MaxBody)
	return pub, true, err
}

// readCloudEvent completes an event that is a CloudEvent: in structured mode its body goes on as it is, in binary mode its
// attributes go along as the header fields they are. Its type is the event's, unless the URL names another.
func (s *server) readCloudEvent(w http.ResponseWriter, r *http.Request, pub *engine.Publication) (err error) {
	if pub.Body, err = httpapi.ReadBody(w, r, s.cfg.MaxBody); err != nil {
		return err
	}
	ce, wrong := cloudevents.Read(r.Header, pub.Body)
	if wrong != nil {
		return problem.Invalid.In(wrong.Field, "%s", wrong.Detail)
	}
	pub.KeptHeaders = ce.Headers
	if pub.Type == "" {
		pub.Type = ce.Type
	}
	return checkPublication("", pub)
}

// outside is what the URL and the header say about the event.
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

// mediaType is the Content-Type of an event posted as it is. Receivers get it word for word, so it has to be true and
// there (EDS-MTH-4).
func mediaType(r *http.Request) (string, error) {
	values := r.Header["Content-Type"]
	if len(values) != 1 || values[0] == "" {
		return "", problem.UnsupportedMediaType.In("Content-Type", "must say what the payload is; receivers get it word for word")
	}
	if values[0] == jsonType {
		return jsonType, nil
	}
	if !validMediaType(values[0]) {
		return "", problem.UnsupportedMediaType.In("Content-Type", "is not a media type of at most %d characters", godwit.MaxContentTypeSize)
	}
	return strings.Clone(values[0]), nil // a waiting event must not keep the whole header of its request in memory
}

func validMediaType(v string) bool {
	if len(v) > godwit.MaxContentTypeSize {
		return false
	}
	for i := range len(v) {
		if v[i] < 0x20 || v[i] > 0x7e {
			return false
		}
	}
	media, _, err := mime.ParseMediaType(v)
	kind, sub, ok := strings.Cut(media, "/")
	return err == nil && ok && kind != "" && sub != "" && !strings.ContainsAny(media, "*")
}

// checkPublication judges what every form of posting has in common. Prefix is where the event stands in the request.
func checkPublication(prefix string, pub *engine.Publication) error {
	if why := godwit.ValidEventType(pub.Type); why != "" {
		return problem.Invalid.In(prefix+"type", "%s", why)
	}
	if len(pub.Attributes) > godwit.MaxAttributes {
		return problem.Invalid.In(prefix+"attributes", "must have at most %d members", godwit.MaxAttributes)
	}
	for name, value := range pub.Attributes {
		if why := management.ValidAttributeName(name); why != "" {
			return problem.Invalid.In(prefix+"attributes."+httpapi.Clip(name), "name %s", why)
		}
		if why := management.ValidAttributeValue(value); why != "" {
			return problem.Invalid.In(prefix+"attributes."+name, "%s", why)
		}
	}
	return nil
}
