package client_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func text(t *testing.T, document json.RawMessage, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

func TestResourcePassesDocuments(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	c := newClient(t, srv)
	endpoints := c.Resource("endpoints")
	var ids []string
	for range 3 {
		made, err := endpoints.Post(t.Context(), map[string]any{"url": "http://127.0.0.1:9/"})
		var e client.Endpoint
		if err != nil || json.Unmarshal(made, &e) != nil || e.Secret == nil {
			t.Fatalf("created %s, %v", made, err)
		}
		ids = append(ids, e.ID)
	}
	changed, err := endpoints.Of(ids[0]).Patch(t.Context(), map[string]any{"description": "new"})
	if !strings.Contains(text(t, changed, err), `"description":"new"`) {
		t.Errorf("changed to %s", changed)
	}
	paused, err := endpoints.Of(ids[0], "pause").Post(t.Context(), nil)
	if !strings.Contains(text(t, paused, err), `"status":"paused"`) {
		t.Errorf("paused %s", paused)
	}
	var listed []string
	for item, err := range endpoints.All(t.Context(), url.Values{"limit": {"2"}}) {
		var e client.Endpoint
		if err != nil || json.Unmarshal(item, &e) != nil {
			t.Fatal(err)
		}
		listed = append(listed, e.ID)
	}
	if len(listed) != 3 || listed[2] != ids[0] {
		t.Errorf("listed %v of %v", listed, ids)
	}
	if err := endpoints.Of(ids[0]).Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	var refused *client.Error
	if _, err := endpoints.Of(ids[0]).Get(t.Context()); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("after deletion: %v", err)
	}
	if _, err := endpoints.Of("a/b?c").Get(t.Context()); !errors.As(err, &refused) || refused.Status == 0 {
		t.Errorf("an id with special characters: %v", err)
	}
}

func TestResourceConfirmsInTwoSteps(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	c := newClient(t, srv)
	purge := c.Resource("dead-letters", "purge")
	all := map[string]any{"all": true}
	asked, err := purge.Ask(t.Context(), http.MethodPost, all)
	if err != nil || asked.Token == "" || asked.Affects == nil || asked.StepUpURL != "" {
		t.Fatalf("asked %+v, %v", asked, err)
	}
	done, err := purge.Confirm(t.Context(), http.MethodPost, all, asked, "")
	if !strings.Contains(text(t, done, err), `"purged":0`) {
		t.Errorf("answered %s", done)
	}
	if _, err := c.Resource("endpoints").Ask(t.Context(), http.MethodPost, map[string]any{"url": "http://127.0.0.1:9/"}); !errors.Is(err, client.ErrNotAsked) {
		t.Errorf("an operation of one step: %v", err)
	}
}

func TestClientActsForATenant(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	other, _ := srv.NewTenant("other", godwit.ScopeRead)
	c, err := client.New(srv.URL, srv.Key, client.WithTenant(other.String()))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := c.Commands().Registry(t.Context())
	if err != nil || registry.Caller.TenantID != other.String() {
		t.Errorf("acts for %+v, %v", registry, err)
	}
	receipt, err := c.Publish(t.Context(), client.Event{Type: "a.b", Body: []byte("bytes"), ContentType: "text/plain"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.Resource("events").Of(receipt.ID, "body").Stream(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || string(got) != "bytes" {
		t.Errorf("body %q, %v", got, err)
	}
	var refused *client.Error
	if _, err := newClient(t, srv).Resource("events").Of(receipt.ID).Get(t.Context()); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("the key's own tenant sees the event: %v", err)
	}
}
