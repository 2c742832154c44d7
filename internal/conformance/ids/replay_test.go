package ids

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/trace"
)

// compensated returns a command whose effect was reverted.
func compensated(c *caller, id string) *answer {
	c.t.Helper()
	charged := c.must(200, "charge.compensable", object{"id": id})
	asked := c.must(202, "command.compensate "+charged.CommandID, nil)
	c.expect(c.confirm(asked.CommandID, asked.Token), 200)
	return charged
}

// replayRows: the response to a repeat.
func replayRows(t *testing.T, r *rig) {
	t.Run("outcome", func(t *testing.T) {
		trace.Covers(t, "IDS-RPL-1", "IDS-RPL-2", "IDS-RPL-8", "IDS-RPL-9")
		c := r.tenant(t)
		first := c.must(200, "effect.count", object{"id": "a"})
		equal(t, "first decision", first.Decision, "first_seen")
		for range 3 {
			repeat := c.must(200, "effect.count", object{"id": "a"})
			same(t, first, repeat)
			equal(t, "summary", repeat.Summary, first.Summary)
			if first.Summary == "" || strings.Contains(string(first.Outcome), "first_seen") {
				t.Errorf("first %s", first.Raw)
			}
			var x, y object
			json.Unmarshal(first.Raw, &x)
			json.Unmarshal(repeat.Raw, &y)
			for name := range y {
				if name != "decision" && name != "executed" && fmt.Sprint(x[name]) != fmt.Sprint(y[name]) {
					t.Errorf("%s differs: %v, %v", name, x[name], y[name])
				}
			}
		}
		c.once("a")
		equal(t, "runs", c.runs("a"), 1)
	})
	t.Run("every end", func(t *testing.T) {
		trace.Covers(t, "IDS-RPL-3")
		c := r.tenant(t)
		for end, want := range map[string]string{"execute": "executed", "fail": "failed", "reject": "rejected", "pass": "executed"} {
			args := object{"id": end, "end": end}
			first := c.submit("effect.count", args)
			equal(t, end, first.Status, want)
			runs := c.runs(end)
			same(t, first, c.submit("effect.count", args))
			equal(t, end+" again", c.submit("effect.count", args).Status, want)
			equal(t, "runs of "+end, c.runs(end), runs)
		}
		equal(t, "tries of what passes", c.runs("pass"), 2)
	})
	t.Run("in progress", func(t *testing.T) {
		trace.Covers(t, "IDS-RPL-4", "IDS-RPL-5", "IDS-RPL-6", "IDS-RPL-7")
		c := r.tenant(t)
		g := c.gate("a")
		e := c.envelope("effect.count", object{"id": "a"})
		answered := c.behind(g, e)
		var repeats []*answer
		for range 3 {
			repeats = append(repeats, c.must(202, "effect.count", object{"id": "a"}))
		}
		for _, a := range repeats {
			if a.Status != "processing" || !bytes.Equal(a.Raw, repeats[0].Raw) || a.CommandID != e["command_id"] || len(a.Key) != 64 {
				t.Errorf("answered %s", a.Raw)
			}
			if a.StatusURL != "/ids/v1/commands/"+a.CommandID || a.Header.Get("Location") != a.StatusURL || a.Header.Get("Retry-After") == "" {
				t.Errorf("where to ask: %q %v", a.StatusURL, a.Header)
			}
		}
		s := c.send("GET", repeats[0].StatusURL, nil)
		c.expect(s, 200)
		equal(t, "status", s.Status, "in_progress")
		c.many(200, "effect.count", object{"id": "a"})
		g.release()
		first := <-answered
		c.expect(first, 200)
		equal(t, "key", first.Key, repeats[0].Key)
		s = c.send("GET", repeats[0].StatusURL, nil)
		if s.Status != "executed" || !bytes.Equal(s.Outcome, first.Outcome) {
			t.Errorf("status after: %s", s.Raw)
		}
		c.once("a")
		equal(t, "runs", c.runs("a"), 1)
		equal(t, "handlers of one command at the same time", r.probe.most, 1)
	})
	t.Run("lost answer", func(t *testing.T) {
		trace.Covers(t, "IDS-RPL-10")
		c := r.tenant(t)
		g := c.gate("a")
		e := c.envelope("effect.count", object{"id": "a"})
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /ids/v1/commands HTTP/1.1\r\nHost: godwit\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			c.key, len(body), body)
		g.wait(t)
		conn.Close() // before it was told anything
		g.release()
		done := c.becomes(e["command_id"].(string), "executed", "")
		repeat := c.post(e)
		c.expect(repeat, 200)
		if !bytes.Equal(repeat.Outcome, done.Outcome) || len(repeat.Outcome) == 0 {
			t.Errorf("resent: %s", repeat.Raw)
		}
		c.once("a")
	})
	t.Run("compensated", func(t *testing.T) {
		trace.Covers(t, "IDS-RPL-11", "IDS-RPL-3")
		c := r.tenant(t)
		first := compensated(c, "a")
		calls, _ := r.provider.calls(first.CommandID)
		refunds := r.provider.refunded()
		for range 3 {
			repeat := c.must(200, "charge.compensable", object{"id": "a"})
			if repeat.Status != "compensated" || repeat.CommandID != first.CommandID || repeat.Decision != "duplicate_replayed" {
				t.Errorf("repeat %s", repeat.Raw)
			}
		}
		if now, _ := r.provider.calls(first.CommandID); now != calls || now != 1 || r.provider.refunded() != refunds || len(r.provider.has(first.CommandID)) != 0 {
			t.Errorf("%d charges and %d refunds after %d and %d", now, r.provider.refunded(), calls, refunds)
		}
	})
	t.Run("secret", func(t *testing.T) {
		c := r.tenant(t)
		first, repeat := c.must(200, "effect.secret", object{"id": "a"}), c.must(200, "effect.secret", object{"id": "a"})
		if first.result()["secret"] == nil || repeat.result()["secret"] != nil || !strings.Contains(string(repeat.Outcome), `"secret_redacted":true`) {
			t.Errorf("first %s\nrepeat %s", first.Raw, repeat.Raw)
		}
		equal(t, "the rest", repeat.result()["value"], first.result()["value"])
	})
}
