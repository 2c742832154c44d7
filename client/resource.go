package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Resource is a collection of the API, such as endpoints, or a part of one of its items, such as an endpoint's secrets. Its
// methods pass JSON documents as the server sends and takes them, so they cover every member, also those that are newer than
// this package.
type Resource struct {
	c    *Client
	path string
}

// Resource returns the collection at /v1/{segments}. Each segment is escaped:
//
//	c.Resource("endpoints", id, "secrets")
func (c *Client) Resource(segments ...string) *Resource {
	path := "/v1"
	for _, s := range segments {
		path += "/" + url.PathEscape(s)
	}
	return &Resource{c: c, path: path}
}

// Of returns a part of one item.
func (r *Resource) Of(id string, segments ...string) *Resource {
	path := r.path
	for _, s := range append([]string{id}, segments...) {
		path += "/" + url.PathEscape(s)
	}
	return &Resource{c: r.c, path: path}
}

// A Page is a part of a list.
type Page struct {
	Items      []json.RawMessage `json:"items"`
	NextCursor string            `json:"next_cursor"` // empty on the last page
}

// Page gets one page of the list, newest first. The query holds filters, limit and cursor.
func (r *Resource) Page(ctx context.Context, query url.Values) (*Page, error) {
	path := r.path
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var p Page
	if err := r.c.do(ctx, http.MethodGet, path, nil, nil, &p); err != nil {
		return nil, err
	}
	return &p, nil
}

// All iterates over the whole list, page by page. It ends after the first error.
func (r *Resource) All(ctx context.Context, query url.Values) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		next := url.Values{"limit": {"200"}}
		for name, values := range query {
			next[name] = values
		}
		for {
			p, err := r.Page(ctx, next)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}
			if p.NextCursor == "" {
				return
			}
			next.Set("cursor", p.NextCursor)
		}
	}
}

// Get reads the resource itself as one document.
func (r *Resource) Get(ctx context.Context) (json.RawMessage, error) {
	var out json.RawMessage
	if err := r.c.do(ctx, http.MethodGet, r.path, nil, nil, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// Stream reads the resource as bytes, of any media type and length. Close it when done. It is not repeated.
func (r *Resource) Stream(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	path := r.path
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	resp, err := r.c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Post sends a document, or nothing if body is nil, and returns the answer. Its idempotency key is new.
func (r *Resource) Post(ctx context.Context, body any) (json.RawMessage, error) {
	return r.write(ctx, http.MethodPost, body, nil)
}

// Patch changes the members that the document names; null removes one.
func (r *Resource) Patch(ctx context.Context, body any) (json.RawMessage, error) {
	return r.write(ctx, http.MethodPatch, body, nil)
}

// Put writes the whole document.
func (r *Resource) Put(ctx context.Context, body any) (json.RawMessage, error) {
	return r.write(ctx, http.MethodPut, body, nil)
}

// A Match is what the caller of PutIf expects of an object.
type Match struct {
	// ETag is that of the object as the caller knows it. Empty: none is expected to be there.
	ETag string
	// Key is the Idempotency-Key of the request; empty: none.
	Key string
	// Query holds parameters of the operation.
	Query url.Values
}

// A Written is the answer to PutIf.
type Written struct {
	Created  bool
	ETag     string
	Document json.RawMessage
}

// PutIf writes the whole document if the object is as the caller expects. If not, the *Error has the status 412. A repeat of a request
// whose answer was lost has it, too: the object is then as the first request made it.
func (r *Resource) PutIf(ctx context.Context, body any, m Match) (*Written, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode body: %w", err)
	}
	header := http.Header{}
	if m.ETag != "" {
		header.Set("If-Match", m.ETag)
	} else {
		header.Set("If-None-Match", "*")
	}
	if m.Key != "" {
		if m.Key, err = quote(m.Key); err != nil {
			return nil, err
		}
		header.Set("Idempotency-Key", m.Key)
	}
	path := r.path
	if len(m.Query) > 0 {
		path += "?" + m.Query.Encode()
	}
	var out *Written
	err = r.c.insist(ctx, func() error {
		resp, err := r.c.send(ctx, http.MethodPut, path, header, text)
		if err != nil {
			return err
		}
		out = &Written{Created: resp.StatusCode == http.StatusCreated}
		out.Document, out.ETag, err = readTagged(resp)
		return err
	})
	return out, err
}

// GetTagged reads the resource itself as one document, with its ETag.
func (r *Resource) GetTagged(ctx context.Context) (document json.RawMessage, etag string, err error) {
	err = r.c.insist(ctx, func() error {
		resp, err := r.c.send(ctx, http.MethodGet, r.path, nil, nil)
		if err != nil {
			return err
		}
		document, etag, err = readTagged(resp)
		return err
	})
	return document, etag, err
}

func readTagged(resp *http.Response) (json.RawMessage, string, error) {
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, "", fmt.Errorf("read answer: %w", err)
	}
	return text, resp.Header.Get("ETag"), nil
}

// Delete removes the resource. It is not repeated: a repeat could not tell what it has just deleted from what never existed.
func (r *Resource) Delete(ctx context.Context) error {
	_, err := r.writeOnce(ctx, http.MethodDelete, nil, nil)
	return err
}

// A Confirmation is asked for by an operation of two steps: its first request did nothing.
type Confirmation struct {
	CommandID string          `json:"command_id"`
	Token     string          `json:"confirmation_token"`
	ExpiresAt *time.Time      `json:"expires_at"`
	StepUpURL string          `json:"step_up_url"` // not empty: another API key has to approve first, see Commands.StepUp
	Affects   *CommandAffects `json:"affects"`     // of a purge
}

// ErrNotAsked reports that an operation was carried out, or answered, without a confirmation.
var ErrNotAsked = errors.New("client: the server did not ask for a confirmation")

// Ask sends the first request of an operation of two steps with the method POST or DELETE. Nothing has been done when it returns.
func (r *Resource) Ask(ctx context.Context, method string, body any) (*Confirmation, error) {
	answer, err := r.write(ctx, method, body, nil)
	if err != nil {
		return nil, err
	}
	var asked Confirmation
	if len(answer) == 0 || json.Unmarshal(answer, &asked) != nil || asked.Token == "" {
		return nil, ErrNotAsked
	}
	return &asked, nil
}

// Confirm sends the second request, with the same method and body, which executes the operation. stepUp is the token of another
// key's approval, if the confirmation has a StepUpURL.
func (r *Resource) Confirm(ctx context.Context, method string, body any, asked *Confirmation, stepUp string) (json.RawMessage, error) {
	header := http.Header{"Godwit-Command": {asked.CommandID}, "Godwit-Confirmation": {asked.Token}}
	if stepUp != "" {
		header.Set("Godwit-Step-Up", stepUp)
	}
	return r.write(ctx, method, body, header)
}

// write sends a document. POST and PATCH go under a new key, so that they can be repeated.
func (r *Resource) write(ctx context.Context, method string, body any, header http.Header) (out json.RawMessage, err error) {
	if header == nil {
		header = http.Header{}
	}
	if method == http.MethodPost || method == http.MethodPatch {
		key, err := r.c.keyFor("")
		if err != nil {
			return nil, err
		}
		field, err := quote(key)
		if err != nil {
			return nil, err
		}
		header.Set("Idempotency-Key", field)
	}
	err = r.c.insist(ctx, func() error {
		out, err = r.writeOnce(ctx, method, body, header)
		return err
	})
	return out, err
}

func (r *Resource) writeOnce(ctx context.Context, method string, body any, header http.Header) (json.RawMessage, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("encode body: %w", err)
		}
	}
	resp, err := r.c.send(ctx, method, r.path, header, text)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if len(strings.TrimSpace(string(answer))) == 0 {
		return nil, nil
	}
	return answer, nil
}
