package cybercube_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

const base = "/api/v1/webhooks"

func TestMain(m *testing.M) { os.Exit(apptest.RemoveBinary(m.Run())) }

const event = `{"type":"project.created","data":{"object":{"id":"P","object":"project","created_at":"2026-01-17T12:00:00Z","updated_at":"2026-01-17T12:00:00Z"}}}`

func post(s *apptest.Server, t *testing.T, status int, key, body string) *apptest.Response {
	t.Helper()
	c := apptest.Call{Path: base + "/events", Body: body, Header: map[string]string{}}
	if key != "" {
		c.Header["Idempotency-Key"] = `"` + key + `"`
	}
	got := s.Call(c)
	if got.Status != status {
		t.Fatalf("%d, want %d\n%s", got.Status, status, got.Body)
	}
	return got
}

// TestKeysOfEvents: a key makes a posting repeatable and is forwarded. So does an id of the event, and both together.
func TestKeysOfEvents(t *testing.T) {
	sink := apptest.NewSink(t)
	s := apptest.Start(t, apptest.Options{})
	s.Must(apptest.Call{Path: base + "/endpoints", Body: apptest.Fields{"url": sink.URL("/")}}, nil)
	const first, second, third = "0123456789abcdef-first", "0123456789abcdef-second", "0123456789abcdef-third"

	one := post(s, t, 202, first, event)
	again := post(s, t, 202, first, event)
	if string(one.Body) != string(again.Body) || again.Header.Get("Idempotency-Replayed") != "true" || one.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("repeated: %s %v", again.Body, again.Header)
	}
	if got := post(s, t, 422, first, strings.Replace(event, `"P"`, `"Q"`, 1)); !strings.Contains(string(got.Body), "IDEMPOTENCY_KEY_REUSED") {
		t.Errorf("another event under the key: %s", got.Body)
	}
	if got := sink.Wait(1)[0].Key(); got != `"`+first+`"` {
		t.Errorf("the key on the wire: %s", got)
	}

	own := strings.Replace(event, `{"type"`, `{"id":"evt_AbcdefghijklmnopqrstuvwxyZ","type"`, 1)
	post(s, t, 202, "", own)
	post(s, t, 202, "", own)
	post(s, t, 202, second, own) // recognised by its id
	post(s, t, 202, second, own) // recognised by its key
	other := strings.Replace(own, `"P"`, `"Q"`, 1)
	if got := post(s, t, 409, third, other); !strings.Contains(string(got.Body), `"id":[`) {
		t.Errorf("another event under the id: %s", got.Body)
	}
	post(s, t, 422, second, other)
	sink.Wait(2)
	if n := len(sink.Requests("")); n != 2 {
		t.Errorf("%d deliveries of two events", n)
	}
}

// TestKeysOfOperations: a repeat gets the first response without its secret, and the operation runs once.
func TestKeysOfOperations(t *testing.T) {
	s := apptest.Start(t, apptest.Options{})
	create := apptest.Call{Path: base + "/endpoints", Body: apptest.Fields{"url": "https://example.com/"}, Header: map[string]string{"Idempotency-Key": `"0123456789abcdef-create"`}}
	var one, again struct {
		Data struct{ ID, Secret string }
	}
	r := s.Must(create, &one)
	repeat := s.Must(create, &again)
	if one.Data.Secret == "" || again.Data.Secret != "" || one.Data.ID != again.Data.ID {
		t.Errorf("first %s\nagain %s", r.Body, repeat.Body)
	}
	if repeat.Header.Get("Location") != r.Header.Get("Location") || repeat.Status != http.StatusCreated {
		t.Errorf("repeat %d %v", repeat.Status, repeat.Header)
	}
	create.Body = apptest.Fields{"url": "https://example.org/"}
	if got := s.Call(create); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("another request under the key: %d %s", got.Status, got.Body)
	}
	var list struct{ Data []struct{ ID string } }
	s.Must(apptest.Call{Path: base + "/endpoints"}, &list)
	if len(list.Data) != 1 {
		t.Errorf("%d endpoints", len(list.Data))
	}
}

// TestEndpointsOfOtherAPIs: this API shows and manages endpoints that other APIs created, and the other way round.
func TestEndpointsOfOtherAPIs(t *testing.T) {
	s := apptest.Start(t, apptest.Options{})
	var native struct{ ID string }
	s.Must(apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{
		"url": "https://example.com/", "filter": apptest.Fields{"queue": []string{"q"}}, "patterns": []string{"a.*"},
	}}, &native)
	var shown struct {
		Data struct {
			ID, Status string
			Events     []string
			Filter     *struct{}
		}
	}
	s.Must(apptest.Call{Path: base + "/endpoints/" + native.ID}, &shown)
	if !strings.HasPrefix(shown.Data.ID, "WEB-") || shown.Data.Events[0] != "a.*" || shown.Data.Filter != nil {
		t.Errorf("shown here: %+v", shown.Data)
	}
	s.Must(apptest.Call{Method: http.MethodPatch, Path: base + "/endpoints/" + shown.Data.ID, Body: apptest.Fields{
		"status": "paused", "filter": apptest.Fields{"resource_ids": []string{"P"}},
	}}, nil)
	var there struct {
		Status  string
		Profile string
		Filter  map[string][]string
	}
	s.Must(apptest.Call{Path: "/v1/endpoints/" + native.ID}, &there)
	if there.Status != "paused" || there.Profile != "eds" || there.Filter["queue"][0] != "q" || there.Filter["resource_id"][0] != "P" {
		t.Errorf("shown there: %+v", there)
	}
}

// TestAnswersAreNotCached covers successes and errors.
func TestAnswersAreNotCached(t *testing.T) {
	s := apptest.Start(t, apptest.Options{})
	for _, path := range []string{"/endpoints", "/endpoints/x", "/nothing"} {
		got := s.Call(apptest.Call{Path: base + path})
		if got.Header.Get("Cache-Control") != "no-store" || got.Header.Get("Request-Id") == "" {
			t.Errorf("%s: %v", path, got.Header)
		}
		head := s.Call(apptest.Call{Method: http.MethodHead, Path: base + path})
		if head.Status != got.Status || len(head.Body) != 0 {
			t.Errorf("HEAD %s: %d, %d bytes", path, head.Status, len(head.Body))
		}
	}
}

// TestMissingToken: the response distinguishes a missing token from a wrong one.
func TestMissingToken(t *testing.T) {
	s := apptest.Start(t, apptest.Options{})
	req, err := http.NewRequest(http.MethodGet, s.URL+base+"/endpoints", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text := make([]byte, 1024)
	n, _ := resp.Body.Read(text)
	if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(string(text[:n]), `"AUTH_TOKEN_MISSING"`) || resp.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("%d %s", resp.StatusCode, text[:n])
	}
}
