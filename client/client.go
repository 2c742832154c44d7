// Package client talks to a Godwit server's native API.
//
//	c, err := client.New("https://hooks.example.com", os.Getenv("GODWIT_KEY"))
//	receipt, err := c.Publish(ctx, client.Event{Type: "order.paid", Body: body})
//
// Every failure that the server explains is an *Error with its stable code. Every POST has an Idempotency-Key, the caller's or
// a new one, so that repeating it is safe. With WithRetry the client repeats requests. Without it, set Event.IdempotencyKey and
// publish the same event again.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Client uses one API key on one server. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	// tenant is the value of Godwit-Tenant; empty: the key's own tenant
	tenant string
	// environment is the value of Godwit-Environment; empty: the key's own
	environment string
	http        *http.Client
	retry       *Retry    // nil: requests are not repeated
	rules       *KeyRules // nil: the rules were not read
	now         func() time.Time
	sleep       func(ctx context.Context, d time.Duration) error

	maxSilence time.Duration // of streams
}

// An Option changes how a client connects.
type Option func(*Client)

// WithHTTPClient uses another HTTP client, for proxies, certificates or timeouts.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithTenant acts for another tenant than the key's own, named by its id or uid. The key needs the scope admin, or is one of the tenant's
// environment.
func WithTenant(tenant string) Option { return func(c *Client) { c.tenant = tenant } }

// WithEnvironment acts for an environment, named by its id or uid, and for a tenant of it if WithTenant names one. The key needs the scope
// admin, or is one of the environment.
func WithEnvironment(environment string) Option {
	return func(c *Client) { c.environment = environment }
}

// With returns a client with other options that shares the connections of this one.
func (c *Client) With(options ...Option) *Client {
	other := *c
	for _, o := range options {
		o(&other)
	}
	return &other
}

// New makes a client of the server at the URL.
func New(baseURL, apiKey string, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("client: %q is not the URL of a server, such as https://hooks.example.com", baseURL)
	}
	if apiKey == "" || strings.ContainsAny(apiKey, " \r\n\t") {
		return nil, errors.New("client: the API key is missing or malformed")
	}
	c := &Client{base: strings.TrimSuffix(baseURL, "/"), token: apiKey, http: http.DefaultClient, now: time.Now, sleep: sleep, maxSilence: maxSilence}
	for _, o := range options {
		o(c)
	}
	if c.retry != nil && c.rules != nil && c.rules.Window > 0 {
		c.retry.Elapsed = min(c.retry.Elapsed, c.rules.Window*9/10) // a later repeat would be executed a second time
	}
	return c, nil
}

// An Error is the server's explanation of a failure (problem details).
type Error struct {
	Status     int    `json:"status"`
	Code       string `json:"code"` // stable
	Title      string `json:"title"`
	Detail     string `json:"detail"`
	RequestID  string `json:"request_id"`
	RetryAfter string `json:"-"` // of the header, as sent
	body       []byte // as sent
	Fields     []struct {
		Field  string `json:"field"`
		Detail string `json:"detail"`
	} `json:"errors"`
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", e.Status)
	if e.Code != "" {
		b.WriteString(" " + e.Code)
	}
	switch {
	case e.Detail != "":
		b.WriteString(": " + e.Detail)
	case e.Title != "":
		b.WriteString(": " + e.Title)
	}
	for _, f := range e.Fields {
		if about := f.Field + ": " + f.Detail; !strings.Contains(e.Detail, about) { // most details name their fields
			b.WriteString("; " + about)
		}
	}
	return b.String()
}

// maxAnswer limits the bytes that are read of a response that is not a stream.
const maxAnswer = 32 << 20

// do makes a request and decodes the JSON response into out, if out is not nil. The request can be repeated: it has a key, or
// its method is idempotent.
func (c *Client) do(ctx context.Context, method, path string, header http.Header, body []byte, out any) error {
	return c.insist(ctx, func() error { return c.once(ctx, method, path, header, body, out) })
}

func (c *Client) once(ctx context.Context, method, path string, header http.Header, body []byte, out any) error {
	resp, err := c.send(ctx, method, path, header, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // to its end: a response that was cut off does not count
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// post makes a POST under the caller's key, or a new one.
func (c *Client) post(ctx context.Context, path, own string, header http.Header, body []byte, out any) error {
	key, err := c.keyFor(own)
	if err != nil {
		return err
	}
	field, err := quote(key)
	if err != nil {
		return err
	}
	if header == nil {
		header = http.Header{}
	}
	header.Set("Idempotency-Key", field)
	return c.do(ctx, http.MethodPost, path, header, body, out)
}

// send makes a request. It returns a successful response, or an *Error.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if c.tenant != "" {
		req.Header.Set("Godwit-Tenant", c.tenant)
	}
	if c.environment != "" {
		req.Header.Set("Godwit-Environment", c.environment)
	}
	req.Header.Set("User-Agent", "godwit-client-go")
	req.GetBody = nil // this package decides whether a request is repeated, not the HTTP library
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readError(resp)
}

func readError(resp *http.Response) error {
	e := &Error{RetryAfter: resp.Header.Get("Retry-After")}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" || json.Unmarshal(text, e) != nil {
		e.Title = http.StatusText(resp.StatusCode)
	}
	e.Status, e.body = resp.StatusCode, text
	return e
}
