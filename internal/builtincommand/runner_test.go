package builtincommand_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

// items returns the tenant's evidence.
func items(t *testing.T, srv *apptest.Server) []evidence.Item {
	t.Helper()
	list, err := srv.App.Store().Evidence(t.Context(), command.EvidenceQuery{Tenant: srv.Tenant.String(), Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// count counts the items that fulfil a condition.
func count(list []evidence.Item, holds func(*evidence.Item) bool) (n int) {
	for i := range list {
		if holds(&list[i]) {
			n++
		}
	}
	return n
}

// executed counts executions of a command. The channel is recorded where the command was reserved.
func executed(list []evidence.Item, name, channel string) int {
	ids := map[string]bool{}
	return count(list, func(it *evidence.Item) bool {
		if it.Type == evidence.Reserved && it.Command == name && it.Channel == channel {
			ids[it.CommandID] = true
		}
		return it.Type == evidence.ExecutedOK && it.Executed && ids[it.CommandID]
	})
}

var apis = []struct{ channel, endpoints, secret string }{
	{"native", "/v1/endpoints/", "value"},
	{"ojs", "/ojs/v1/webhooks/subscriptions/", "secret"},
	{"cybercube", "/api/v1/webhooks/endpoints/", "secret"},
}

func TestEveryAPIRotatesAndDeletesByCommand(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		srv := apptest.Start(t, o)
		for _, api := range apis {
			t.Run(api.channel, func(t *testing.T) {
				path := api.endpoints + srv.Endpoint("http://127.0.0.1:9/").ID.String()
				rotated := srv.Must(apptest.Call{Method: "POST", Path: path + "/rotate-secret"}, nil)
				if !strings.Contains(string(rotated.Body), `"`+api.secret+`":"`) || strings.Contains(string(rotated.Body), "redacted") {
					t.Errorf("rotated: %s", rotated.Body)
				}
				// Without a key each request is a new command.
				if again := srv.Must(apptest.Call{Method: "POST", Path: path + "/rotate-secret"}, nil); string(again.Body) == string(rotated.Body) {
					t.Errorf("rotated again: %s", again.Body)
				}
				for _, want := range []int{http.StatusNoContent, http.StatusNotFound} {
					if r := srv.Call(apptest.Call{Method: "DELETE", Path: path}); r.Status != want {
						t.Errorf("deleted: %d %s", r.Status, r.Body)
					}
				}
				list := items(t, srv)
				if n := executed(list, "endpoint.rotate_secret", api.channel); n != 2 {
					t.Errorf("evidence of %d rotations", n)
				}
				if n := executed(list, "endpoint.delete", api.channel); n != 1 {
					t.Errorf("evidence of %d deletions", n)
				}
			})
		}
		file := srv.Must(apptest.Call{Path: "/ids/v1/evidence/export?from_seq=1"}, nil)
		if report, err := evidence.Verify(bytes.NewReader(file.Body), evidence.Options{Tenant: srv.Tenant.String()}); err != nil || report.Totals.Executions != 9 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// The server dies after a rotation, before its answer is stored for repeats. The repeat rotates nothing, and says that the
// secret was shown.
func TestRotationUnderAKeyHappensOnceAcrossACrash(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		srv := apptest.Start(t, o)
		caller, err := srv.App.Management().Callers.Authenticate(t.Context(), srv.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, api := range apis {
			const key = "rotate once, please 1"
			id := srv.Endpoint("http://127.0.0.1:9/").ID
			path := api.endpoints + id.String() + "/rotate-secret"
			call := apptest.Call{Method: "POST", Path: path, Header: map[string]string{"Idempotency-Key": `"` + key + `"`}}
			srv.Must(call, nil)
			scope := idempotency.Scope{Principal: caller.Key.Principal, Tenant: srv.Tenant, Operation: "POST " + path}
			rec, err := srv.App.Store().Recorded(t.Context(), scope.ID(key), time.Time{})
			if err == nil {
				err = srv.App.Store().Forget(t.Context(), rec)
			}
			if err != nil {
				t.Fatal(err)
			}
			again := srv.Must(call, nil)
			if !strings.Contains(string(again.Body), `"secret_redacted":true`) || strings.Contains(string(again.Body), `"`+api.secret+`":"`) {
				t.Errorf("%s: again %s", api.channel, again.Body)
			}
			secrets, err := srv.App.Management().Secrets.List(t.Context(), srv.Tenant, id)
			if err != nil || len(secrets) != 2 {
				t.Errorf("%s: %d secrets, %v", api.channel, len(secrets), err)
			}
		}
	})
}

// A rotation that was interrupted made the last secret that the endpoint may have. The repeat is not refused for it.
func TestRepeatOfAnInterruptedRotationAtTheLimit(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	id := srv.Endpoint("http://127.0.0.1:9/").ID
	call := apptest.Call{Method: "POST", Path: "/v1/endpoints/" + id.String() + "/rotate-secret", Header: map[string]string{}}
	for range management.MaxLiveSecrets - 2 {
		srv.Must(call, nil)
	}
	call.Header["Idempotency-Key"] = `"rotate once, please 1"`
	var first, repeat struct{ ID string }
	srv.Must(call, &first)
	srv.Interrupt(call)
	srv.Must(call, &repeat)
	if first.ID == "" || repeat.ID != first.ID {
		t.Errorf("first %+v, repeat %+v", first, repeat)
	}
	call.Header["Idempotency-Key"] = `"rotate once, please 2"`
	if got := srv.Call(call); got.Status != 409 {
		t.Errorf("one more: %d %s", got.Status, got.Body)
	}
}

// An operation of an API and the command of /ids/v1 with the same args are one command: each is a repeat of the other.
func TestOperationsAreTheSameCommandsByEveryWay(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		srv := apptest.Start(t, o)
		caller, err := srv.App.Management().Callers.Authenticate(t.Context(), srv.Key)
		if err != nil {
			t.Fatal(err)
		}
		const key = "the same by every way 1"
		ep := srv.Endpoint("http://127.0.0.1:9/")
		first := srv.Must(apptest.Call{Method: "POST", Path: "/v1/endpoints/" + ep.ID.String() + "/rotate-secret", Body: `{"overlap_seconds":3600.5}`,
			Header: map[string]string{"Idempotency-Key": `"` + key + `"`}}, nil)
		var made struct{ ID string }
		if err := json.Unmarshal(first.Body, &made); err != nil {
			t.Fatal(err)
		}
		var again struct {
			Decision string
			Outcome  struct{ Result map[string]any }
		}
		srv.Must(apptest.Call{Path: "/ids/v1/commands", Body: map[string]any{
			"command_id": command.NewID(time.Now()), "tenant_id": srv.Tenant.String(), "actor_id": caller.Key.Principal.String(), "issued_at": time.Now().UTC(),
			"intent": map[string]any{"entity": "endpoint", "action": "rotate_secret", "target": ep.ID.String()},
			"args":   map[string]any{"overlap_seconds": 3600.5, "request": fmt.Sprintf("%x/1", sha256.Sum256([]byte(key)))},
		}}, &again)
		if again.Decision != "duplicate_replayed" || again.Outcome.Result["secret_id"] != made.ID || again.Outcome.Result["secret"] != nil {
			t.Errorf("again %+v; first %s", again, first.Body)
		}
		secrets, err := srv.App.Management().Secrets.List(t.Context(), srv.Tenant, ep.ID)
		if err != nil || len(secrets) != 2 {
			t.Errorf("%d secrets, %v", len(secrets), err)
		}
	})
}

// Decisions about Idempotency-Keys are evidence in every API, without the key and the content of the request (IDS IT-15).
func TestManagementUnderAKeyLeavesEvidence(t *testing.T) {
	trace.Covers(t, "IDS-EVD-1", "IDS-EVD-9")
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		srv := apptest.Start(t, o)
		const key, secret = "a key of the caller's", "whsec_bm90IHRvIGJlIHNlZW4gYnkgYW55Ym9keSE="
		for _, api := range []struct{ channel, path, body string }{
			{"native", "/v1/endpoints", `{"url":"http://127.0.0.1:9/%d","profile":"standard-webhooks","secret":"` + secret + `"}`},
			{"ojs", "/ojs/v1/webhooks/subscriptions", `{"url":"http://127.0.0.1:9/%d","events":["*"],"secret":"` + secret + `"}`},
			{"cybercube", "/api/v1/webhooks/endpoints", `{"url":"http://127.0.0.1:9/%d","events":["*"]}`},
		} {
			before := len(items(t, srv))
			for i, n := range []int{1, 1, 2} {
				r := srv.Call(apptest.Call{Path: api.path, Body: fmt.Sprintf(api.body, n), Header: map[string]string{"Idempotency-Key": `"` + key + `"`}})
				if (i < 2) != (r.Status == http.StatusCreated) {
					t.Errorf("%s: %d: %d %s", api.channel, i, r.Status, r.Body)
				}
			}
			list := items(t, srv)[before:]
			if len(list) != 3 {
				t.Fatalf("%s: %d items", api.channel, len(list))
			}
			for i, want := range []string{"first_seen", "duplicate_replayed", "conflict_rejected"} {
				it := &list[i]
				if it.Decision != want || it.Channel != api.channel || it.Command != "POST "+api.path || it.Key != list[0].Key || len(it.Key) != 64 || it.Actor == "" {
					t.Errorf("%s: item %+v", api.channel, it)
				}
			}
			if list[2].Stored != list[0].Fingerprint || list[2].Fingerprint == list[0].Fingerprint {
				t.Errorf("%s: fingerprints %+v", api.channel, list[2])
			}
		}
		text, err := json.Marshal(items(t, srv))
		if err != nil {
			t.Fatal(err)
		}
		for _, hidden := range []string{key, secret, "127.0.0.1:9"} {
			if strings.Contains(string(text), hidden) {
				t.Errorf("evidence shows %q", hidden)
			}
		}
		// Publishing events is not management.
		before := len(items(t, srv))
		srv.Must(apptest.Call{Path: "/ojs/v1/events/batch", Header: map[string]string{"Idempotency-Key": `"a batch of none, 0001"`},
			Body: `{"events":[{"specversion":"1.0","id":"e1","type":"job.completed","source":"ojs://shop/orders","time":"2026-01-01T00:00:00Z","data":{}}]}`}, nil)
		if n := len(items(t, srv)); n != before {
			t.Errorf("%d items about a batch of events", n-before)
		}
	})
}

func TestDeadLettersAreReplayedAndPurgedByCommand(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		srv := apptest.Start(t, o)
		sink := apptest.NewSink(t)
		sink.Script("/", apptest.Status(400), apptest.Status(400), apptest.Status(400), apptest.Status(200))
		ep := srv.Endpoint(sink.URL("/"))
		var events []godwit.EventID
		for range 3 {
			ev := srv.Publish("order.paid", `{}`)
			srv.WaitDelivery(ev, ep, godwit.DeliveryTerminal)
			events = append(events, ev)
		}
		var replayed struct {
			Replayed int
			Next     string `json:"next_cursor"`
		}
		body := map[string]any{"type": "order.paid", "limit": 1}
		srv.Must(apptest.Call{Path: "/v1/dead-letters/replay", Body: body}, &replayed)
		if replayed.Replayed != 1 || replayed.Next == "" {
			t.Errorf("replayed %+v", replayed)
		}
		srv.WaitDelivery(events[2], ep, godwit.DeliveryAccepted) // the newest event
		var asked struct {
			CommandID string `json:"command_id"`
			Token     string `json:"confirmation_token"`
		}
		purge := apptest.Call{Path: "/v1/dead-letters/purge", Body: `{"endpoint":"` + ep.ID.String() + `","replayed":true}`}
		if r := srv.Must(purge, &asked); r.Status != http.StatusAccepted {
			t.Fatalf("asked: %d", r.Status)
		}
		letters := func() int {
			list, err := srv.App.Store().ListDeadLetters(t.Context(), store.DeadLetterFilter{TenantID: srv.Tenant, Replayed: true}, store.Page{Limit: 9})
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		if letters() != 3 {
			t.Errorf("%d dead letters before it is confirmed", letters())
		}
		purge.Header = map[string]string{"Godwit-Command": asked.CommandID, "Godwit-Confirmation": asked.Token}
		for range 2 {
			if r := srv.Must(purge, nil); string(r.Body) != `{"purged":3,"more":false}`+"\n" {
				t.Errorf("purged %s", r.Body)
			}
		}
		if letters() != 0 {
			t.Errorf("%d dead letters are left", letters())
		}
		list := items(t, srv)
		if executed(list, "dead_letters.replay", "native") != 1 || executed(list, "dead_letters.purge", "native") != 1 {
			t.Errorf("evidence %+v", list)
		}
	})
}

func TestEventsOfATimeAreReplayedByCommand(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		srv := apptest.Start(t, o)
		sink := apptest.NewSink(t)
		old := srv.Endpoint(sink.URL("/old"))
		var had godwit.EventID
		for range 205 { // more than one command replays
			had = srv.Publish("order.paid", `{}`)
		}
		srv.WaitDelivery(had, old, godwit.DeliveryAccepted)
		fresh := srv.Endpoint(sink.URL("/fresh"), apptest.Fields{"patterns": []string{"nothing.such"}})
		now := time.Now()
		var view struct {
			Data struct {
				Queued  int  `json:"queued"`
				HasMore bool `json:"has_more"`
			} `json:"data"`
		}
		for _, ep := range []apptest.Endpoint{fresh, old} {
			srv.Must(apptest.Call{Path: "/api/v1/webhooks/replay", Body: map[string]any{"endpoint_id": ep.ID.String(),
				"start_time": now.Add(-time.Hour).Format(time.RFC3339), "end_time": now.Add(time.Hour).Format(time.RFC3339)}}, &view)
			if view.Data.Queued != 205 || view.Data.HasMore {
				t.Errorf("replayed %+v", view)
			}
		}
		srv.WaitDelivery(had, fresh, godwit.DeliveryAccepted)
		if n := executed(items(t, srv), "events.replay", "cybercube"); n != 4 {
			t.Errorf("evidence of %d commands", n)
		}
	})
}

// The published rules about keys hold for commands: a rejected command does not use up its key, and old keys are
// forgotten.
func TestKeysOfOrders(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	srv := apptest.Start(t, apptest.Options{Clock: clock.NewManual(now)})
	caller, err := srv.App.Management().Callers.Authenticate(t.Context(), srv.Key)
	if err != nil {
		t.Fatal(err)
	}
	runner := &builtincommand.Runner{Executor: srv.App.Executor(), Config: builtincommand.Config{Management: srv.App.Management()}, Now: srv.Clock.Now}
	run := func(o builtincommand.Submission) (*builtincommand.Done, error) {
		o.Key, o.Channel = "one key for all of it", "native"
		return runner.Run(context.Background(), caller, o)
	}
	replay := builtincommand.Submission{Entity: "dead_letters", Action: "replay", Args: map[string]any{"all": true}}
	first, err := run(replay)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := run(replay); err != nil || again.CommandID != first.CommandID {
		t.Errorf("again %+v, %v", again, err)
	}
	srv.Clock.Advance(24*time.Hour + time.Second)
	later, err := run(replay)
	if err != nil || later.CommandID == first.CommandID {
		t.Errorf("a day later %+v, %v", later, err)
	}
	if again, err := run(replay); err != nil || again.CommandID != later.CommandID {
		t.Errorf("and again %+v, %v", again, err)
	}

	ep := srv.Endpoint("http://127.0.0.1:9/")
	revoke := builtincommand.Submission{Entity: "endpoint", Action: "revoke_secret", Target: ep.ID.String(), Args: map[string]any{"secret_id": ep.Secret.ID}}
	if _, err := run(revoke); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("the only secret was revoked: %v", err)
	}
	if _, _, err := runner.RotateSecret(t.Context(), builtincommand.Request{Caller: caller, Channel: "native"}, ep.ID, management.Rotation{}); err != nil {
		t.Fatal(err)
	}
	if done, err := run(revoke); err != nil || done.CommandID == "" {
		t.Errorf("revoked %+v, %v", done, err)
	}
}
