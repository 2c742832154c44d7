package dialects

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestOneEventInEveryDialect posts one event by each API and finds it at an endpoint of each profile, in that profile's
// envelope and with its signature.
func TestOneEventInEveryDialect(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "OJS-SUB-13", "OJS-DLV-21", "CCW-EVT-29")
		srv := apptest.Start(t, o)
		sink := apptest.NewSink(t)
		endpoints := map[string]apptest.Endpoint{}
		for _, profile := range []string{"eds", "ojs", "cybercube", "standard-webhooks"} {
			endpoints[profile] = srv.Endpoint(sink.URL("/"+profile), apptest.Fields{"profile": profile, "patterns": []string{"project.*"}})
		}
		posts := 0
		for name, call := range map[string]apptest.Call{
			"native":    {Path: "/v1/events?type=project.created", Body: `{"id":"PRJ-X2M8KD-F","object":"project","name":"A"}`},
			"ojs":       {Path: "/ojs/v1/events", Body: `{"specversion":"1.0","type":"project.created","source":"ojs://test","subject":"PRJ-X2M8KD-F","data":{"queue":"q","name":"A"}}`},
			"cybercube": {Path: "/api/v1/webhooks/events", Body: `{"type":"project.created","data":{"object":{"id":"PRJ-X2M8KD-F","object":"project","name":"A","created_at":"2026-01-17T12:00:00Z","updated_at":"2026-01-17T12:00:00Z"}}}`},
		} {
			t.Run(name, func(t *testing.T) {
				call.Method = "POST"
				answer := srv.Must(call, nil)
				posts++
				requests := map[string]apptest.Request{}
				for profile := range endpoints {
					requests[profile] = sink.WaitOn("/"+profile, posts)[posts-1]
				}
				if string(requests["eds"].Body) != string(requests["standard-webhooks"].Body) {
					t.Error("eds and standard-webhooks do not carry the same bytes")
				}
				checkOJS(t, requests["ojs"], endpoints["ojs"])
				checkCybercube(t, requests["cybercube"], endpoints["cybercube"])
				for profile, r := range requests {
					if keys := r.Header["Idempotency-Key"]; len(keys) != 1 || keys[0] != requests["eds"].Header.Get("Idempotency-Key") {
						t.Errorf("%s came with Idempotency-Key %q", profile, keys)
					}
				}
				t.Logf("answered %d %s", answer.Status, answer.Body)
			})
		}
	})
}

func checkOJS(t *testing.T, r apptest.Request, ep apptest.Endpoint) {
	t.Helper()
	var envelope struct {
		SpecVersion string         `json:"specversion"`
		ID          string         `json:"id"`
		Type        string         `json:"type"`
		Source      string         `json:"source"`
		Time        string         `json:"time"`
		Data        map[string]any `json:"data"`
	}
	if err := json.Unmarshal(r.Body, &envelope); err != nil {
		t.Fatalf("ojs: %v\n%s", err, r.Body)
	}
	if envelope.SpecVersion != "1.0" || envelope.Type != "project.created" || envelope.Source == "" || envelope.Time == "" || envelope.Data == nil {
		t.Errorf("ojs: %s", r.Body)
	}
	if !regexp.MustCompile(`^evt_[0-9a-f-]{36}$`).MatchString(envelope.ID) {
		t.Errorf("ojs: id %q", envelope.ID)
	}
	signed(t, "ojs", r.Header.Get("X-Ojs-Signature"), r.Header.Get("X-Ojs-Timestamp"), r.Body, ep.Secret.Value)
	if got := r.Header.Get("X-Ojs-Subscription-Id"); got != ep.ID.String() {
		t.Errorf("ojs: subscription %q", got)
	}
}

func checkCybercube(t *testing.T, r apptest.Request, ep apptest.Endpoint) {
	t.Helper()
	var envelope map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &envelope); err != nil {
		t.Fatalf("cybercube: %v\n%s", err, r.Body)
	}
	for name, form := range map[string]string{
		"id": `^"evt_[A-Za-z0-9]{26}"$`, "type": `^"project.created"$`, "api_version": `^"2026-01-17"$`,
		"created_at": `^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"$`, "account_id": `^"ACC-[A-Z2-9]{6}-[A-Z2-9]"$`, "livemode": `^true$`,
	} {
		if !regexp.MustCompile(form).Match(envelope[name]) {
			t.Errorf("cybercube: %s is %s", name, envelope[name])
		}
	}
	if len(envelope) != 7 {
		t.Errorf("cybercube: %s", r.Body)
	}
	var data struct {
		Object struct{ ID, Object string } `json:"object"`
	}
	if err := json.Unmarshal(envelope["data"], &data); err != nil || data.Object.ID == "" || data.Object.Object == "" {
		t.Errorf("cybercube: data %s", envelope["data"])
	}
	signed(t, "cybercube", r.Header.Get("X-Webhook-Signature"), r.Header.Get("X-Webhook-Timestamp"), r.Body, ep.Secret.Value)
}

func signed(t *testing.T, dialect, signature, timestamp string, body []byte, secret string) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); signature != want {
		t.Errorf("%s: signature %q, want %q", dialect, signature, want)
	}
}

// TestEveryAPIManagesEveryEndpoint: an endpoint made by one API is found, changed and deleted by the others, under its id
// in each.
func TestEveryAPIManagesEveryEndpoint(t *testing.T) {
	trace.Covers(t, "CCW-API-29")
	srv := apptest.Start(t, apptest.Options{})
	sink := apptest.NewSink(t)
	native := srv.Endpoint(sink.URL("/native"), apptest.Fields{"patterns": []string{"a.b"}})
	var ojs struct{ ID godwit.EndpointID }
	srv.Must(apptest.Call{Path: "/ojs/v1/webhooks/subscriptions", Body: apptest.Fields{"url": sink.URL("/ojs"), "events": []string{"a.b"}}}, &ojs)
	var cybercube struct{ Data struct{ ID string } }
	srv.Must(apptest.Call{Path: "/api/v1/webhooks/endpoints", Body: apptest.Fields{"url": sink.URL("/cybercube"), "events": []string{"a.b"}}}, &cybercube)

	public := func(id godwit.EndpointID) string {
		var e struct {
			PublicID string `json:"public_id"`
		}
		srv.Must(apptest.Call{Path: "/v1/endpoints/" + id.String()}, &e)
		return e.PublicID
	}
	var made struct{ ID godwit.EndpointID }
	srv.Must(apptest.Call{Path: "/v1/endpoints/" + cybercube.Data.ID}, &made)
	for _, id := range []godwit.EndpointID{native.ID, ojs.ID, made.ID} {
		srv.Must(apptest.Call{Path: "/ojs/v1/webhooks/subscriptions/" + id.String()}, nil)
		srv.Must(apptest.Call{Method: "PATCH", Path: "/ojs/v1/webhooks/subscriptions/" + id.String(), Body: `{"events":["a.c"]}`}, nil)
		var seen struct {
			Data struct {
				ID     string
				Events []string
			}
		}
		srv.Must(apptest.Call{Path: "/api/v1/webhooks/endpoints/" + public(id)}, &seen)
		if seen.Data.ID != public(id) || len(seen.Data.Events) != 1 || seen.Data.Events[0] != "a.c" {
			t.Errorf("changed by one API, seen by the other: %+v", seen)
		}
		srv.Must(apptest.Call{Method: "DELETE", Path: "/api/v1/webhooks/endpoints/" + public(id)}, nil)
		if got := srv.Call(apptest.Call{Path: "/v1/endpoints/" + id.String()}); got.Status != 404 {
			t.Errorf("deleted by one API, the other answers %d", got.Status)
		}
	}
}

// certificateFiles makes a certificate of the test authority for 127.0.0.1.
func certificateFiles(t testing.TB) (certFile, keyFile string) {
	t.Helper()
	cert, key := apptest.ServerCertificate(t, "127.0.0.1", "localhost")
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, text := range map[string]string{certFile: cert, keyFile: key} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}
