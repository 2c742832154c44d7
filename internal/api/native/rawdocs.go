package native

import (
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// EventEnvelope is an event described in JSON.
type EventEnvelope struct {
	Type           string            `json:"type" maxLength:"128" example:"order.created"`
	Data           any               `json:"data,omitempty" doc:"The payload: any JSON, delivered byte for byte as it stands here. Exactly one of data and data_base64 is required."`
	DataBase64     string            `json:"data_base64,omitempty" contentEncoding:"base64" doc:"A payload that is not JSON"`
	ContentType    string            `json:"content_type,omitempty" doc:"Media type of the payload. Defaults to application/json for data and to application/octet-stream for data_base64."`
	Attributes     map[string]string `json:"attributes,omitempty" doc:"What endpoint filters look at"`
	IdempotencyKey string            `json:"idempotency_key,omitempty" doc:"In a batch: the key of this event. A single event has its key in the header."`
}

// EventBatch is up to 1000 events.
type EventBatch struct {
	Events []EventEnvelope `json:"events" minItems:"1" maxItems:"1000"`
}

// BatchResult holds the result of each event, in their order.
type BatchResult struct {
	Items []BatchItem `json:"items"`
}

// BatchItem is the result of one event.
type BatchItem struct {
	Index          int    `json:"index"`
	Status         string `json:"status" enum:"accepted,replayed,refused"`
	ID             string `json:"id,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	Deliveries     *int   `json:"deliveries,omitempty"`
	CreatedAt      string `json:"created_at,omitempty" format:"date-time"`
	Problem        any    `json:"problem,omitempty" doc:"Problem details of a refused event"`
}

func postEventDoc(r *router, maxPayload int64) huma.Operation {
	text := &huma.Schema{Type: huma.TypeString}
	accepted := jsonResponse("Stored durably; it will be delivered", r.refOf(Accepted{}))
	accepted.Headers = map[string]*huma.Param{
		"Location":             {Schema: text, Description: "Where the event is"},
		"Idempotency-Replayed": {Schema: text, Description: "true when this is the answer to an earlier request with the same key"},
	}
	return huma.Operation{
		OperationID: "post-event", Summary: "Post an event",
		Description: fmt.Sprintf("Two forms. With type in the query (or in the header %s) the body is the payload, delivered byte for byte with its Content-Type. Without it the body is an envelope in JSON. A CloudEvent may come in either mode of its HTTP binding: structured (application/cloudevents+json) or binary (ce-* fields, which go with every attempt); its type is the event's, with / and : replaced by dots, and its id is not its key. In binary mode Content-Type may be absent; the event is then delivered as application/octet-stream. Types that begin with webhook. or godwit. are the server's own and are refused.\n\nThe answer leaves after the event is on disk. The payload may have up to %d bytes.\n\nA key of an environment, or one with the scope admin, may post for several tenants at once, a broadcast: Godwit-Tenant then has up to %d ids or uids with a comma between them, or * for all tenants of the environment that have an endpoint for the event. Each gets an event of its own. The answer leaves after the broadcast and its list of tenants are on disk; it has the id of the broadcast, under which its progress can be read. For up to %d tenants the answer also waits for their events and lists them.",
			EventTypeHeader, maxPayload, godwit.MaxBroadcastNames, maxListedTenants),
		Parameters: []*huma.Param{
			{Name: "type", In: "query", Schema: text, Description: "Type of the event; the body is then its payload"},
			{Name: "attr.NAME", In: "query", Schema: text, Description: "Value of the attribute NAME; repeat with other names. Only with type."},
			{Name: EventTypeHeader, In: "header", Schema: text, Description: "Type of the event, in place of the query"},
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			jsonType: {Schema: r.refOf(EventEnvelope{})},
			"*/*":    {Schema: &huma.Schema{Description: "The payload, when type is given outside the body"}},
		}},
		Responses: r.failures(map[string]*huma.Response{"202": accepted}),
	}
}

func postBatchDoc(r *router, maxBody int64) huma.Operation {
	return huma.Operation{
		OperationID: "post-event-batch", Summary: "Post a batch of events",
		Description: fmt.Sprintf("Up to %d events in one transaction. All are checked first: if one is wrong, none is stored. An Idempotency-Key in the header stands for the whole batch, and each event then gets a key of its own; without it every event may bring its key, and repeats are told apart one by one. The body may have up to %d bytes.",
			godwit.MaxEventsPerBatch, maxBody),
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{jsonType: {Schema: r.refOf(EventBatch{})}}},
		Responses: r.failures(map[string]*huma.Response{
			"202": jsonResponse("All are stored, now or before", r.refOf(BatchResult{})),
			"207": jsonResponse("Some were refused because of their keys; the others are stored", r.refOf(BatchResult{})),
		}),
	}
}

func eventBodyDoc(r *router) huma.Operation {
	return huma.Operation{
		OperationID: "get-event-body", Summary: "Get the payload of an event",
		Description: "Byte for byte as posted, with its Content-Type.",
		Parameters:  []*huma.Param{{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}, Description: "Id of the event"}},
		Responses: r.failures(map[string]*huma.Response{
			"200": {Description: "The payload", Content: map[string]*huma.MediaType{"*/*": {Schema: &huma.Schema{}}}},
		}),
	}
}

func exportDoc(r *router) huma.Operation {
	text := &huma.Schema{Type: huma.TypeString}
	when := &huma.Schema{Type: huma.TypeString, Format: "date-time"}
	return huma.Operation{
		OperationID: "export-dead-letters",
		Summary:     "Export dead letters with their payloads",
		Description: "One JSON document a line, newest first. The connection is cut if the export cannot be completed.",
		Parameters: []*huma.Param{
			{Name: "endpoint", In: "query", Schema: text}, {Name: "type", In: "query", Schema: text},
			{Name: "status", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"terminal", "exhausted"}}},
			{Name: "reason", In: "query", Schema: text}, {Name: "since", In: "query", Schema: when}, {Name: "until", In: "query", Schema: when},
			{Name: "replayed", In: "query", Schema: &huma.Schema{Type: huma.TypeBoolean}, Description: "Also those that were replayed since"},
		},
		Responses: r.failures(map[string]*huma.Response{
			"200": {Description: "Lines of dead letters", Content: map[string]*huma.MediaType{"application/x-ndjson": {Schema: r.refOf(ExportedDeadLetter{})}}},
		}),
	}
}

func streamDoc(r *router) huma.Operation {
	return huma.Operation{
		OperationID: "stream-attempts", Summary: "Watch attempts as they happen",
		Description: "Server-sent events named attempt, whose data is one attempt in JSON. A client that reads too slowly misses some.",
		Responses: r.failures(map[string]*huma.Response{
			"200": {Description: "A stream of attempts", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: r.refOf(StreamedAttempt{})}}},
		}),
	}
}
