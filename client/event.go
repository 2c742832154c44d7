package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// An Event is an event to be published.
type Event struct {
	Type string // such as order.paid
	// ContentType is the media type of the body. Receivers get it unchanged. Defaults to application/json.
	ContentType string
	Body        []byte
	// Attributes are matched by the filters of endpoints.
	Attributes map[string]string
	// IdempotencyKey, of 16 to 255 printable characters, makes a repeated Publish safe and is sent with every delivery.
	// Defaults to a new UUID, which the receipt holds.
	IdempotencyKey string
}

// A Receipt says that an event is durably stored.
type Receipt struct {
	ID             string    `json:"id"`
	IdempotencyKey string    `json:"idempotency_key"`
	Deliveries     int       `json:"deliveries"` // number of endpoints that get the event
	CreatedAt      time.Time `json:"created_at"`
}

// Publish posts an event. When it returns nil, the event will be delivered.
func (c *Client) Publish(ctx context.Context, e Event) (*Receipt, error) {
	path, header := e.request()
	var r Receipt
	if err := c.post(ctx, path, e.IdempotencyKey, header, e.Body, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// request returns the path and the header of a request that posts the event.
func (e *Event) request() (path string, header http.Header) {
	query := url.Values{"type": {e.Type}}
	for name, value := range e.Attributes {
		query.Set("attr."+name, value)
	}
	header = http.Header{"Content-Type": {"application/json"}}
	if e.ContentType != "" {
		header.Set("Content-Type", e.ContentType)
	}
	return "/v1/events?" + query.Encode(), header
}

// PublishBatch posts up to 1000 events in one request. All are checked first: if one is invalid, none is stored. An event whose
// IdempotencyKey was used for another event is refused alone; the error names it, and its receipt is empty. If no event has a
// key, the batch gets one.
func (c *Client) PublishBatch(ctx context.Context, events []Event) ([]Receipt, error) {
	type item struct {
		Type           string            `json:"type"`
		DataBase64     []byte            `json:"data_base64"` // JSON in data would not keep its bytes
		ContentType    string            `json:"content_type"`
		Attributes     map[string]string `json:"attributes,omitempty"`
		IdempotencyKey string            `json:"idempotency_key,omitempty"`
	}
	var batch struct {
		Events []item `json:"events"`
	}
	whole := !slices.ContainsFunc(events, func(e Event) bool { return e.IdempotencyKey != "" })
	for _, e := range events {
		it := item{
			Type: e.Type, ContentType: e.ContentType, Attributes: e.Attributes, IdempotencyKey: e.IdempotencyKey,
			DataBase64: append([]byte{}, e.Body...), // not nil, which would encode as null
		}
		if it.ContentType == "" {
			it.ContentType = "application/json"
		}
		if !whole {
			var err error
			if it.IdempotencyKey, err = c.keyFor(e.IdempotencyKey); err != nil {
				return nil, err
			}
		}
		batch.Events = append(batch.Events, it)
	}
	body, err := json.Marshal(batch)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Items []struct {
			Receipt
			Problem *Error `json:"problem"`
		} `json:"items"`
	}
	send := func() error { return c.do(ctx, http.MethodPost, "/v1/events/batch", nil, body, &answer) }
	if whole {
		send = func() error { return c.post(ctx, "/v1/events/batch", "", nil, body, &answer) }
	}
	if err := send(); err != nil {
		return nil, err
	}
	receipts := make([]Receipt, 0, len(answer.Items))
	var errs []error
	for _, it := range answer.Items {
		if it.Problem != nil {
			errs = append(errs, it.Problem)
		}
		receipts = append(receipts, it.Receipt)
	}
	return receipts, errors.Join(errs...)
}
