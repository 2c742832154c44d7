package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
)

func newClient(t *testing.T, srv *apptest.Server) *client.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(srv.URL+"/", srv.Key, client.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPublishFollowAndReceive(t *testing.T) {
	sink := apptest.NewSink(t)
	srv := apptest.Start(t, apptest.Options{})
	c := newClient(t, srv)
	ep, err := c.CreateEndpoint(t.Context(), client.NewEndpoint{
		URL: sink.URL("/hook"), Patterns: []string{"order.*"}, Filter: map[string][]string{"region": {"eu"}},
	})
	if err != nil || ep.Secret == nil || ep.Secret.Value == "" || ep.Status != "active" {
		t.Fatalf("endpoint %+v, %v", ep, err)
	}
	stream, err := c.Attempts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()

	event := client.Event{
		Type: "order.paid", ContentType: "text/plain; charset=utf-8", Body: []byte("paid\x00"),
		Attributes: map[string]string{"region": "eu"}, IdempotencyKey: `order "42" paid \ once`,
	}
	first, err := c.Publish(t.Context(), event)
	if err != nil || first.Deliveries != 1 || first.IdempotencyKey != event.IdempotencyKey {
		t.Fatalf("receipt %+v, %v", first, err)
	}
	again, err := c.Publish(t.Context(), event)
	if err != nil || again.ID != first.ID {
		t.Errorf("a repeat gave %+v, %v", again, err)
	}
	a, err := stream.Next()
	if err != nil || a.EventID != first.ID || a.EventType != "order.paid" || a.Outcome != "accepted" || a.Status != 200 ||
		a.DeliveryStatus != "accepted" || !strings.Contains(string(a.Raw), a.ID) {
		t.Errorf("attempt %+v, %v", a, err)
	}
	got := sink.Wait(1)[0]
	if string(got.Body) != "paid\x00" || got.Header.Get("Content-Type") != event.ContentType {
		t.Errorf("received %q as %s", got.Body, got.Header.Get("Content-Type"))
	}
	stream.Close()
	if _, err := stream.Next(); err == nil {
		t.Error("a closed stream goes on")
	}
}

func TestBatch(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	c := newClient(t, srv)
	const exact = `{ "n": "<1>" }` // as json.Marshal would not write it
	receipts, err := c.PublishBatch(t.Context(), []client.Event{
		{Type: "a.b", Body: []byte(exact)},
		{Type: "a.b", Body: []byte{0, 1, 2}, ContentType: "application/octet-stream", IdempotencyKey: "a-key-long-enough"},
	})
	if err != nil || len(receipts) != 2 || receipts[0].ID == "" || receipts[1].IdempotencyKey != "a-key-long-enough" {
		t.Fatalf("receipts %+v, %v", receipts, err)
	}
	if stored := srv.Must(apptest.Call{Path: "/v1/events/" + receipts[0].ID + "/body"}, nil); string(stored.Body) != exact ||
		stored.Header.Get("Content-Type") != "application/json" {
		t.Errorf("stored %q as %s", stored.Body, stored.Header.Get("Content-Type"))
	}
	_, err = c.PublishBatch(t.Context(), []client.Event{{Type: "a.b", Body: []byte(`{}`), ContentType: "application/json", IdempotencyKey: "a-key-long-enough"}})
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusUnprocessableEntity {
		t.Errorf("a key that was used for another payload: %v", err)
	}
}

func TestFailuresAreExplained(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	c := newClient(t, srv)
	_, err := c.Publish(t.Context(), client.Event{Type: "no good", Body: []byte(`{}`)})
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != 422 || refused.Code == "" || len(refused.Fields) != 1 || refused.Fields[0].Field != "type" ||
		strings.Count(err.Error(), "type: ") != 1 {
		t.Errorf("got %v: %+v", err, refused)
	}
	stranger, err := client.New(srv.URL, "gdw_nobody-knows-this-key")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Attempts(t.Context()); !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
		t.Errorf("got %v", err)
	}
	for _, tc := range []struct{ url, key string }{{"nowhere", "k"}, {"ftp://x", "k"}, {"http://x", ""}, {"http://x", "a b"}} {
		if _, err := client.New(tc.url, tc.key); err == nil {
			t.Errorf("took %+v", tc)
		}
	}
	if _, err := c.Publish(t.Context(), client.Event{Type: "a", IdempotencyKey: "key\r\nX-Injected: 1"}); err == nil {
		t.Error("took a key with a line break")
	}
}

// What stands between client and server may answer too, and not with problem details.
func TestForeignAnswers(t *testing.T) {
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": hello\n\nevent: attempt\ndata: {\"id\":\ndata: \"att_1\"}\n\ndata: nonsense\n\n")
			return
		}
		w.Header().Set("Retry-After", "7")
		http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
	}))
	defer foreign.Close()
	c, err := client.New(foreign.URL, "gdw_key", client.WithHTTPClient(foreign.Client()))
	if err != nil {
		t.Fatal(err)
	}
	var refused *client.Error
	_, err = c.Publish(context.Background(), client.Event{Type: "a"})
	if !errors.As(err, &refused) || refused.Status != http.StatusBadGateway || refused.RetryAfter != "7" {
		t.Errorf("got %v", err)
	}
	s, err := c.Attempts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if a, err := s.Next(); err != nil || a.ID != "att_1" {
		t.Errorf("got %+v, %v", a, err)
	}
	if _, err := s.Next(); err == nil {
		t.Error("took nonsense for an attempt")
	}
	if _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestEventTypes(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	c := newClient(t, srv)
	schema := json.RawMessage(`{"type":"object","required":["order"]}`)
	put, err := c.PutEventType(t.Context(), client.EventType{Name: "order.paid", Description: "An order was paid", Schema: schema, Example: json.RawMessage(`{"order":1}`)})
	if err != nil || put.Version != 1 || len(put.Versions) != 1 {
		t.Fatalf("put %+v, %v", put, err)
	}
	if put, err = c.PutEventType(t.Context(), client.EventType{Name: "order.paid", Schema: json.RawMessage(`true`), Deprecated: true}); err != nil || put.Version != 2 {
		t.Errorf("put again %+v, %v", put, err)
	}
	got, err := c.EventType(t.Context(), "order.paid")
	if err != nil || !got.Deprecated || len(got.Versions) != 2 || string(got.Versions[0].Schema) != string(schema) || got.Versions[0].CreatedAt.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
	own, err := c.EventTypes(t.Context(), "")
	if err != nil || len(own) != 1 || own[0].Name != "order.paid" {
		t.Errorf("own types %+v, %v", own, err)
	}
	for standard, n := range map[string]int{"ojs": 23, "cybercube": 33} {
		if types, err := c.EventTypes(t.Context(), standard); err != nil || len(types) != n || types[0].Standard != standard {
			t.Errorf("%s: %d types, %v", standard, len(types), err)
		}
	}
	if err := c.DeleteEventType(t.Context(), "order.paid"); err != nil {
		t.Error(err)
	}
	var wrong *client.Error
	if _, err := c.EventType(t.Context(), "order.paid"); !errors.As(err, &wrong) || wrong.Status != http.StatusNotFound {
		t.Errorf("after it was deleted: %v", err)
	}
}

func TestMetadataIsAnyJSON(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	c := newClient(t, srv)
	ep, err := c.CreateEndpoint(t.Context(), client.NewEndpoint{
		URL: "https://a.example/", Metadata: map[string]any{"team": "a", "limits": map[string]any{"n": 1}}, Paused: true,
	})
	if err != nil || string(ep.Metadata["limits"]) != `{"n":1}` || ep.Status != "paused" || !strings.HasPrefix(ep.PublicID, "WEB-") {
		t.Errorf("endpoint %+v, %v", ep, err)
	}
}

// A server that no longer sends heartbeats is frozen or out of reach, although the connection is open.
func TestSilentStreamEnds(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-hang
	}))
	defer server.Close()
	defer close(hang)
	c, err := client.New(server.URL, "gdw_any", client.WithMaxSilence(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Attempts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Next(); !errors.Is(err, client.ErrSilent) {
		t.Errorf("Next returned %v", err)
	}
}
