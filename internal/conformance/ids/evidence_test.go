package ids

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// evidenceRows: the evidence shows every decision to an auditor.
func evidenceRows(t *testing.T, r *rig) {
	t.Run("decisions", func(t *testing.T) {
		trace.Covers(t, "IDS-EVD-1", "IDS-EVD-2", "IDS-EVD-3", "IDS-EVD-4", "IDS-EVD-5", "IDS-EVD-6")
		c := r.tenant(t)
		args := object{"id": "a"}
		seen := 0
		grown := func(what string) []evidence.Item {
			items := c.evidence("")
			added := items[seen:]
			if len(added) == 0 {
				t.Errorf("%s left no evidence", what)
			}
			seen = len(items)
			return added
		}
		g := c.gate("a")
		e := c.envelope("effect.count", args)
		answered := c.behind(g, e)
		reserved := grown("the reservation")
		equal(t, "decision", reserved[0].Decision, "first_seen")
		equal(t, "executed at the reservation", reserved[0].Executed, false)

		during := c.envelope("effect.count", args)
		c.expect(c.post(during), 202)
		it := grown("a repeat in progress")[0]
		if it.Decision != "duplicate_replayed" || it.OutcomeStatus != "in_progress" || it.Executed || it.SubmittedID != during["command_id"] {
			t.Errorf("repeat in progress: %+v", it)
		}
		g.release()
		first := <-answered
		it = grown("the execution")[0]
		if it.Type != "execution.executed" || it.Decision != "first_seen" || !it.Executed || it.CommandID != first.CommandID ||
			it.Key != first.Key || it.OutcomeRef != first.OutcomeRef || it.OutcomeStatus != "executed" {
			t.Errorf("execution: %+v", it)
		}
		after := c.envelope("effect.count", args)
		repeat := c.post(after)
		it = grown("a repeat")[0]
		if it.Type != "observation.emitted" || it.Decision != "duplicate_replayed" || it.Executed || it.CommandID != first.CommandID ||
			it.SubmittedID != after["command_id"] || it.SubmittedID == it.CommandID || it.Key != first.Key || it.OutcomeRef != repeat.OutcomeRef {
			t.Errorf("repeat: %+v", it)
		}
		c.must(409, "effect.count", args, object{"options": object{"x": 1}})
		it = grown("a conflict")[0]
		if it.Type != "execution.rejected" || it.Decision != "conflict_rejected" || it.Executed || it.CommandID != first.CommandID || it.Key != first.Key {
			t.Errorf("conflict: %+v", it)
		}
		for end, kind := range map[string]string{"fail": "execution.failed", "reject": "execution.rejected"} {
			a := c.must(422, "effect.count", object{"id": end, "end": end})
			added := grown(end)
			last := added[len(added)-1]
			if last.Type != kind || last.Decision != "first_seen" || last.OutcomeRef != a.OutcomeRef {
				t.Errorf("%s: %+v", end, last)
			}
		}
	})
	t.Run("reconstruction", func(t *testing.T) {
		trace.Covers(t, "IDS-EVD-7")
		c := r.tenant(t)
		reconstruct(t, c)
	})
	t.Run("nothing sensitive", func(t *testing.T) {
		trace.Covers(t, "IDS-EVD-9")
		c := r.tenant(t)
		const secret = "hunter2-5f1d"
		args := object{"id": "a", "password": secret, "note": secret}
		more := object{"options": object{"reason": secret}, "nonce": secret + "-n"}
		first := c.must(200, "effect.secret", args, more)
		c.must(200, "effect.secret", args, more)
		c.must(409, "effect.secret", args)
		c.must(422, "effect.unheard_of", args, more)
		c.must(422, "effect.count", object{"id": 7, "password": secret})
		asked := c.awaiting("effect.remove", args)
		c.expect(c.confirm(asked.CommandID, asked.Token), 200)
		c.confirm(asked.CommandID, "cft_"+secret)
		for what, text := range map[string]string{"api": string(c.send("GET", "/ids/v1/evidence?limit=1000", nil).Raw), "export": string(c.send("GET", "/ids/v1/evidence/export", nil).Raw)} {
			if !strings.Contains(text, first.Key) {
				t.Fatalf("%s: %s", what, text)
			}
			for _, word := range []string{secret, fmt.Sprint(first.result()["secret"]), asked.Token, fmt.Sprint(first.result()["value"]), c.key} {
				if strings.Contains(text, word) {
					t.Errorf("the evidence (%s) holds %q", what, word)
				}
			}
		}
	})
	t.Run("never apart from the record", func(t *testing.T) {
		trace.Covers(t, "IDS-EVD-10")
		c := r.tenant(t)
		db := r.database(t)
		g := c.gate("a")
		e := c.envelope("effect.count", object{"id": "a"})
		answered := c.behind(g, e)
		id := e["command_id"].(string)
		mend := `DROP TRIGGER evidence_full`
		if r.Config.Postgres() {
			mend += ` ON evidence_items`
			alter(t, db, `CREATE FUNCTION evidence_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room for evidence'; END $$`,
				fmt.Sprintf(`CREATE TRIGGER evidence_full BEFORE INSERT ON evidence_items FOR EACH ROW WHEN (NEW.tenant = '%s') EXECUTE FUNCTION evidence_full()`, c.tenant))
		} else {
			alter(t, db, fmt.Sprintf(`CREATE TRIGGER evidence_full BEFORE INSERT ON evidence_items WHEN NEW.tenant = '%s' BEGIN SELECT RAISE(ABORT, 'no room for evidence'); END`, c.tenant))
		}
		g.release()
		until(t, "the outcome was not stored", func() bool { return r.Log.Has("outcome of a command not stored yet", id) })
		equal(t, "effects", c.effects("a"), 1)
		equal(t, "status without evidence", c.status(id).Status, "in_progress")
		// Without evidence nothing is reserved, and no repeat is answered.
		if a := c.submit("effect.count", object{"id": "b"}); a.Code < 500 || c.runs("b") != 0 {
			t.Errorf("reserved: %d %s", a.Code, a.Raw)
		}
		if a := c.submit("effect.count", object{"id": "a"}); a.Code < 500 {
			t.Errorf("a repeat: %d %s", a.Code, a.Raw)
		}
		alter(t, db, mend)
		c.expect(<-answered, 200)
		equal(t, "status with evidence", c.status(id).Status, "executed")
		if _, executions := decided(c.evidence("command_id=" + id)); executions != 1 {
			t.Errorf("%d executions in evidence", executions)
		}
		c.once("a")
		equal(t, "runs", c.runs("a"), 1)
	})
}

// told is what a caller was answered, as the caller noted it.
type told struct{ submitted, original, decision, status, outcome string }

// reconstruct makes over twenty submissions and determines from the exported file alone how often the command was executed
// and what each caller got. It reads the file as plain JSON, without our code.
func reconstruct(t *testing.T, c *caller) {
	args := object{"id": "a"}
	var want []told
	note := func(e object, a *answer) {
		status, decision := a.Status, a.Decision
		if status == "processing" {
			status = "in_progress"
		}
		if a.Code == 409 {
			status, decision = "", "conflict_rejected"
		}
		want = append(want, told{e["command_id"].(string), a.CommandID, decision, status, a.OutcomeRef})
	}
	g := c.gate("a")
	first := c.envelope("effect.count", args)
	answered := c.behind(g, first)
	for range 5 {
		e := c.envelope("effect.count", args)
		note(e, c.post(e))
	}
	g.release()
	executed := <-answered
	note(first, executed)
	for i := range 15 {
		e := c.envelope("effect.count", args)
		if i%5 == 4 {
			e["options"] = object{"i": i}
		}
		note(e, c.post(e))
	}
	c.must(200, "effect.count", object{"id": "another"})

	file := c.send("GET", "/ids/v1/evidence/export", nil).Raw
	if _, err := evidence.Verify(bytes.NewReader(file), evidence.Options{}); err != nil {
		t.Fatal(err)
	}
	executions := 0
	got := map[told]int{}
	for i, line := range strings.Split(strings.TrimSpace(string(file)), "\n") {
		var it struct {
			Type, Decision                            string
			Executed                                  bool
			Key, ID, Submitted, Outcome, OutcomeState string
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		text := func(name string) string { s, _ := m[name].(string); return s }
		it.Type, it.Decision, it.Key, it.ID, it.Submitted = text("type"), text("decision"), text("idempotency_key"), text("command_id"), text("submitted_command_id")
		it.Outcome, it.OutcomeState = text("outcome_ref"), text("outcome_status")
		it.Executed, _ = m["executed"].(bool)
		if i == 0 || it.Key != executed.Key {
			continue // the header, another command
		}
		if it.Executed {
			executions++
		}
		if it.Type != "execution.reserved" {
			got[told{it.Submitted, it.ID, it.Decision, it.OutcomeState, it.Outcome}]++
		}
	}
	equal(t, "executions", executions, c.effects("a"))
	equal(t, "answers", len(got), len(want))
	for _, w := range want {
		if got[w] != 1 {
			t.Errorf("evidence tells %d times of %+v", got[w], w)
		}
	}
	if t.Failed() {
		t.Logf("evidence: %+v", got)
	}
}

// TestEvidenceKeyIsToldAsPEM: the key comes in the form that the client prefers, and pins an export in either.
func TestEvidenceKeyIsToldAsPEM(t *testing.T) {
	r := newRig(t, apptest.Options{})
	c := r.tenant(t)
	c.must(200, "effect.count", object{"id": "a"})
	file := c.send("GET", "/ids/v1/evidence/export", nil).Raw
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/json": "application/json", "text/html": "application/json",
		"application/x-pem-file": "application/x-pem-file", "application/json;q=0.5, application/x-pem-file": "application/x-pem-file",
		"application/x-pem-file;q=0.5, application/json": "application/json", "application/x-pem-file;q=0": "application/json",
		"application/x-pem-file, */*;q=0.1": "application/x-pem-file", "application/x-pem-file;q=nonsense": "application/json",
	} {
		req, err := http.NewRequest(http.MethodGet, r.URL+"/ids/v1/evidence/key", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.key)
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		resp, err := r.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != want || !slices.Contains(resp.Header.Values("Vary"), "Accept") {
			t.Errorf("%q: %d %v %s, %v", accept, resp.StatusCode, resp.Header, text, err)
			continue
		}
		key, err := evidence.ParsePublicKey(string(text))
		if err != nil {
			t.Errorf("%q: %v", accept, err)
			continue
		}
		if report, err := evidence.Verify(bytes.NewReader(file), evidence.Options{Keys: []ed25519.PublicKey{key}}); err != nil || !report.Pinned {
			t.Errorf("%q: %+v, %v", accept, report, err)
		}
	}
}
