package ids

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// recordRows: which data is kept under a key, and for how long.
func recordRows(t *testing.T, r *rig) {
	t.Run("reserved before the effect", func(t *testing.T) {
		trace.Covers(t, "IDS-STO-2", "IDS-STO-7")
		c := r.tenant(t)
		g := c.gate("a")
		e := c.envelope("effect.count", object{"id": "a"})
		answered := c.behind(g, e)
		equal(t, "effects before", c.effects("a"), 0)
		running := c.status(e["command_id"].(string))
		// Another process sees the record: it is in the database, not in memory.
		var status string
		if err := r.database(t).QueryRow(fmt.Sprintf("SELECT status FROM command_records WHERE tenant = '%s' AND idempotency_key = '%s'", c.tenant, running.Key)).Scan(&status); err != nil || status != "in_progress" {
			t.Fatalf("status %q: %v", status, err)
		}
		r.Advance(3 * time.Second)
		g.release()
		done := <-answered
		c.expect(done, 200)
		if !done.CreatedAt.Equal(running.CreatedAt) || done.UpdatedAt.Sub(running.UpdatedAt) != 3*time.Second {
			t.Errorf("created %v then %v, updated %v then %v", running.CreatedAt, done.CreatedAt, running.UpdatedAt, done.UpdatedAt)
		}
		r.Advance(time.Second)
		repeat := c.must(200, "effect.count", object{"id": "a"})
		if !repeat.UpdatedAt.Equal(done.UpdatedAt) || !repeat.CreatedAt.Equal(done.CreatedAt) {
			t.Errorf("a repeat changed %v, %v", repeat.CreatedAt, repeat.UpdatedAt)
		}
	})
	t.Run("fields", func(t *testing.T) {
		trace.Covers(t, "IDS-STO-3", "IDS-STO-5", "IDS-STO-6")
		c := r.tenant(t)
		first := c.must(200, "effect.count", object{"id": "a"})
		repeat := c.envelope("effect.count", object{"id": "a"})
		if repeat["command_id"] == first.CommandID {
			t.Fatal("the repeat has no id of its own")
		}
		same(t, first, c.post(repeat))
		equal(t, "command of the repeat's answer", c.post(repeat).CommandID, first.CommandID)
		equal(t, "command in the record", r.record(t, c.tenant, first.Key).CommandID, first.CommandID)
		equal(t, "the repeat's own id is no record's", c.status(repeat["command_id"].(string)).Code, 404)

		s := c.status(first.CommandID)
		var members map[string]json.RawMessage
		if err := json.Unmarshal(s.Raw, &members); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"idempotency_key", "command_id", "status", "outcome_ref", "created_at", "updated_at", "ttl_expires_at"} {
			if len(members[name]) < 3 {
				t.Errorf("%s: %s", name, members[name])
			}
		}
		// What the reference points at is where the status is.
		id, ok := strings.CutPrefix(first.OutcomeRef, "outcome:")
		if pointed := c.status(id); !ok || string(pointed.Outcome) != string(first.Outcome) {
			t.Errorf("%q leads to %d %s", first.OutcomeRef, pointed.Code, pointed.Raw)
		}
	})
	t.Run("every status", func(t *testing.T) {
		trace.Covers(t, "IDS-STO-4", "IDS-STO-5")
		c := r.tenant(t)
		g := c.gate("held")
		held := c.envelope("effect.count", object{"id": "held"})
		answered := c.behind(g, held)
		ids := map[string]string{
			"in_progress": held["command_id"].(string),
			"executed":    c.must(200, "effect.count", object{"id": "a"}).CommandID,
			"failed":      c.must(422, "effect.count", object{"id": "b", "end": "fail"}).CommandID,
			"rejected":    c.must(422, "effect.count", object{"id": "c", "end": "reject"}).CommandID,
			"compensated": compensated(c, "d").CommandID,
		}
		for want, id := range ids {
			s := c.status(id)
			equal(t, "status", s.Status, want)
			if terminal := want != "in_progress"; terminal != (s.OutcomeRef != "") || terminal != (len(s.Outcome) > 0) {
				t.Errorf("%s has the outcome %s at %q", want, s.Outcome, s.OutcomeRef)
			}
		}
		g.release()
		<-answered
		db := r.database(t)
		for _, status := range []string{"done", "processing", ""} {
			if _, err := db.Exec(fmt.Sprintf("UPDATE command_records SET status = '%s' WHERE tenant = '%s'", status, c.tenant)); err == nil {
				t.Errorf("the database took the status %q", status)
			}
		}
	})
	t.Run("window", func(t *testing.T) {
		trace.Covers(t, "IDS-STO-8", "IDS-STO-11")
		c := r.tenant(t)
		var got struct {
			Commands []struct {
				Entity, Action, Class string
				TTL                   command.Window `json:"ttl"`
			} `json:"commands"`
		}
		c.get("/ids/v1/registry", &got)
		windows := map[string]time.Duration{}
		for _, d := range got.Commands {
			windows[d.Entity+"."+d.Action] = d.TTL.Duration()
			if d.Class != "I0" && d.TTL == 0 {
				t.Errorf("%s.%s shows no window", d.Entity, d.Action)
			}
		}
		for name, want := range map[string]time.Duration{"effect.count": 30 * 24 * time.Hour, "effect.day": 24 * time.Hour, "effect.window": 10 * time.Minute} {
			equal(t, name, windows[name], want)
			a := c.must(200, name, object{"id": name})
			equal(t, name+" expires after", a.WindowEnd.Sub(a.CreatedAt), want)
			if rec := r.record(t, c.tenant, a.Key); rec.ExpiresAt.Sub(rec.CreatedAt) != want {
				t.Errorf("%s is kept from %v to %v", name, rec.CreatedAt, rec.ExpiresAt)
			}
		}
		first := c.status(c.must(200, "effect.day", object{"id": "effect.day"}).CommandID)
		r.Advance(24*time.Hour + time.Second)
		anew := c.must(200, "effect.day", object{"id": "effect.day"})
		if anew.Decision != "first_seen" || !anew.Executed || anew.CommandID == first.CommandID || anew.Key != first.Key || string(anew.Outcome) == string(first.Outcome) {
			t.Errorf("after the window: %s", anew.Raw)
		}
		equal(t, "effects", c.effects("effect.day"), 2)
		equal(t, "command in the record", r.record(t, c.tenant, anew.Key).CommandID, anew.CommandID)
		for _, it := range c.evidence("command_id=" + anew.CommandID) {
			equal(t, "previous command of "+it.Type, it.PreviousID, first.CommandID)
		}
	})
	t.Run("no end under a running command", func(t *testing.T) {
		trace.Covers(t, "IDS-STO-12")
		c := r.tenant(t)
		g := c.gate("a")
		answered := c.behind(g, c.envelope("effect.brief", object{"id": "a"}))
		r.Advance(2 * time.Second) // its window was one
		a := c.must(202, "effect.brief", object{"id": "a"})
		equal(t, "status", a.Status, "processing")
		r.Advance(time.Second)
		g.release()
		c.expect(<-answered, 200)
		c.once("a")
		equal(t, "runs", c.runs("a"), 1)
	})
	t.Run("conflict", func(t *testing.T) {
		trace.Covers(t, "IDS-STO-13", "IDS-STO-14", "IDS-STO-15")
		c := r.tenant(t)
		args := object{"id": "a", "password": "hunter2-never-in-evidence"}
		first := c.must(200, "effect.count", args, object{"options": object{"notify": "boss@example.com"}})
		before := r.record(t, c.tenant, first.Key)
		conflict := c.must(409, "effect.count", args, object{"options": object{"notify": "thief@example.com"}})
		if conflict.Status != "rejected" || conflict.Type != "execution.rejected" || conflict.Reason != "idempotency_conflict" {
			t.Errorf("refused as %s", conflict.Raw)
		}
		after := r.record(t, c.tenant, first.Key)
		if string(before.MAC) != string(after.MAC) || before.Version != after.Version {
			t.Error("the record was touched")
		}
		equal(t, "fingerprint of the record", before.Fingerprint, first.Fingerprint)
		c.once("a")
		equal(t, "runs", c.runs("a"), 1)
		same(t, first, c.must(200, "effect.count", args, object{"options": object{"notify": "boss@example.com"}}))

		found := false
		for _, it := range c.evidence("idempotency_key=" + first.Key) {
			line, err := json.Marshal(it)
			if err != nil || strings.Contains(string(line), "hunter2") || strings.Contains(string(line), "example.com") {
				t.Errorf("evidence shows what was said: %s", line)
			}
			if it.Decision != "conflict_rejected" {
				continue
			}
			found = true
			if it.Stored != first.Fingerprint || it.Fingerprint == it.Stored || !strings.HasPrefix(it.Fingerprint, "sha256:") || it.Executed {
				t.Errorf("evidence of the conflict: %s", line)
			}
		}
		if !found {
			t.Error("no evidence of the conflict")
		}
	})
}

// TestTwoNodesReserveOnce sends two hundred submissions at once to a server and to a second executor on the same database,
// which acts as another process.
func TestTwoNodesReserveOnce(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "IDS-STO-1", "IDS-RPL-7")
		r := newRig(t, o)
		second, err := app.OpenStore(context.Background(), &r.Config.Storage, r.made.Log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { second.Close() })
		r.made.Store = second
		x := r.successor(t)
		c := r.tenant(t)
		answers := make([]*answer, 200)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				if i%2 == 0 {
					answers[i] = c.submit("effect.count", object{"id": "a"})
				} else {
					answers[i] = c.submitTo(x, "effect.count", object{"id": "a"})
				}
			})
		}
		wg.Wait()
		settled(t, c, answers)
		c.once("a")
		equal(t, "handlers at the same time", r.probe.most, 1)
		equal(t, "runs", c.runs("a"), 1)
	})
}

// submitTo submits to an executor without an API, and renders its answer as the API would.
func (c *caller) submitTo(x *command.Executor, name string, args object) *answer {
	text, err := json.Marshal(c.envelope(name, args))
	if err != nil {
		c.t.Error(err)
		return &answer{}
	}
	e, err := command.ParseEnvelope(text)
	if err != nil {
		c.t.Error(err)
		return &answer{}
	}
	got, err := x.Submit(context.Background(), command.Caller{Tenant: c.tenant, Actor: c.actor, Scopes: []string{"ingest"}}, e)
	if err != nil {
		c.t.Error(err)
		return &answer{}
	}
	a := &answer{Code: 200, Header: http.Header{}, Status: string(got.Status), Decision: string(got.Decision), Executed: got.Executed, CommandID: got.CommandID,
		Key: got.Key, OutcomeRef: got.OutcomeRef}
	if got.Decision == command.DuplicateReplayed {
		a.Header.Set("Idempotency-Replayed", "true")
	}
	if got.Outcome == nil {
		a.Code, a.Status = 202, "processing"
		return a
	}
	if a.Outcome, err = json.Marshal(got.Outcome); err != nil {
		c.t.Error(err)
	}
	return a
}

// settled checks the responses to many submissions of one command: one was first, all others got its outcome or learnt that
// it is in progress.
func settled(t testing.TB, c *caller, answers []*answer) {
	t.Helper()
	var first *answer
	for _, a := range answers {
		if a.Decision == "first_seen" {
			if first != nil {
				t.Fatalf("two were first: %s and %s", first.Raw, a.Raw)
			}
			first = a
		}
	}
	if first == nil || first.Code != 200 || !first.Executed {
		t.Fatalf("none was first and executed: %+v", first)
	}
	for _, a := range answers {
		switch {
		case a == first:
		case a.Code == 202 && a.Status == "processing" && a.CommandID == first.CommandID && a.Key == first.Key:
		default:
			same(t, first, a)
		}
	}
	decisions, executions := decided(c.evidence("idempotency_key=" + first.Key))
	if executions != 1 || decisions["first_seen"] != 1 || decisions["duplicate_replayed"] != len(answers)-1 {
		t.Errorf("evidence of %d executions and %v", executions, decisions)
	}
}
