package ids

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// ingress is a source whose deliveries are commands.
type ingress struct {
	c     *caller
	path  string
	token string
}

func (c *caller) ingress(as string) *ingress {
	c.t.Helper()
	a := c.send("POST", "/v1/sources", object{"name": "partner", "scheme": "bearer", "settings": object{"commands_as": as}})
	c.expect(a, 201)
	var made struct {
		Path   string `json:"path"`
		Issued struct {
			Secret string `json:"secret"`
		} `json:"issued"`
	}
	if err := json.Unmarshal(a.Raw, &made); err != nil || made.Path == "" || made.Issued.Secret == "" {
		c.t.Fatalf("source: %v\n%s", err, a.Raw)
	}
	return &ingress{c, made.Path, made.Issued.Secret}
}

// deliver sends an envelope as a webhook, under a key of the transport's own.
func (in *ingress) deliver(key string, envelope object) *answer {
	in.c.t.Helper()
	body, err := json.Marshal(envelope)
	if err != nil {
		in.c.t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, in.c.URL+in.path, bytes.NewReader(body))
	if err != nil {
		in.c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+in.token)
	if key != "" {
		req.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	resp, err := in.c.http.Do(req)
	if err != nil {
		in.c.t.Fatal(err)
	}
	defer resp.Body.Close()
	a := &answer{Code: resp.StatusCode, Header: resp.Header}
	if a.Raw, err = io.ReadAll(resp.Body); err != nil {
		in.c.t.Fatal(err)
	}
	_ = json.Unmarshal(a.Raw, a) // a problem has another form
	return a
}

// TestWebhookIngress: a command over a webhook is the same command as over HTTP.
func TestWebhookIngress(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "IDS-DLV-6")
		r := newRig(t, o)
		c := r.tenant(t)
		in := c.ingress(c.actor)

		first := c.must(200, "effect.count", object{"id": "a"})
		again := in.deliver("delivery-0000000001", c.envelope("effect.count", object{"id": "a"}))
		c.expect(again, 200)
		if again.Decision != "duplicate_replayed" || again.CommandID != first.CommandID || string(again.Outcome) != string(first.Outcome) ||
			again.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("by webhook: %s\nfirst: %s", again.Raw, first.Raw)
		}
		c.once("a")

		other := in.deliver("delivery-0000000002", c.envelope("effect.count", object{"id": "b"}))
		c.expect(other, 200)
		c.expect(in.deliver("delivery-0000000002", c.envelope("effect.count", object{"id": "b"})), 200) // the transport's own repeat
		same(t, other, c.must(200, "effect.count", object{"id": "b"}))
		c.once("b")

		// While the first delivery runs, the sender must retry: 2xx or 4xx would end the delivery (IT-16).
		g := c.gate("slow")
		under := c.behind(g, c.envelope("effect.count", object{"id": "slow"}))
		busy := in.deliver("delivery-0000000003", c.envelope("effect.count", object{"id": "slow"}))
		if c.expect(busy, 503); busy.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		g.release()
		<-under
		c.expect(in.deliver("delivery-0000000003", c.envelope("effect.count", object{"id": "slow"})), 200)
		c.once("slow")

		// An invalid delivery is refused and stores nothing.
		c.expect(in.deliver("", c.envelope("effect.count", object{"id": "x"})), 400)
		c.expect(in.deliver("delivery-0000000004", object{"no": "envelope"}), 422)
		c.expect(in.deliver("delivery-0000000005", c.envelope("probe.delete", object{"run": "x"})), 422)
		foreign := c.envelope("effect.count", object{"id": "x"})
		foreign["actor_id"] = "key_0190a1b2-0000-7000-8000-000000000001"
		c.expect(in.deliver("delivery-0000000006", foreign), 403)
		if n := c.effects("x"); n != 0 {
			t.Errorf("%d effects of what was refused", n)
		}
	})
}

// TestIngressWaitsWithinBounds: an upstream gets an answer before it gives up, also if its own delivery began the command. The
// answer makes it deliver again (IT-16).
func TestIngressWaitsWithinBounds(t *testing.T) {
	r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.RelayDeadline = config.Duration(time.Second) }})
	c := r.tenant(t)
	in := c.ingress(c.actor)
	g := c.gate("long")
	envelope := c.envelope("effect.count", object{"id": "long"})
	answered := make(chan *answer, 1)
	go func() { answered <- in.deliver("delivery-0000000001", envelope) }()
	g.wait(t)
	busy := <-answered // while the command waits at its gate
	if c.expect(busy, 503); busy.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	g.release()
	until(t, "the outcome", func() bool { return in.deliver("delivery-0000000001", envelope).Code == 200 })
	c.once("long")

	// A command that only reads keeps no record. Cut off by the deadline it has no outcome, which 422 would be.
	g = c.gate("read")
	reading := c.envelope("effect.read", object{"id": "read"})
	c.expect(in.deliver("delivery-0000000002", reading), 503)
	g.release()
	until(t, "the answer", func() bool { return in.deliver("delivery-0000000002", reading).Code == 200 })
}

// TestSourcesBorrowNoRights: only a caller that has every right of a key may let a source submit commands for that key, and
// the evidence names that caller.
func TestSourcesBorrowNoRights(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		c := r.tenant(t)
		weak, peer, stranger := c.colleague(godwit.ScopeManage, godwit.ScopeRead), c.colleague(godwit.ScopeManage), r.tenant(t)
		create := func(by *caller, name, as string) *answer {
			return by.send("POST", "/v1/sources", object{"name": name, "scheme": "bearer", "settings": object{"commands_as": as}})
		}
		for name, try := range map[string]struct {
			by   *caller
			as   string
			code int
		}{
			"more rights":      {weak, c.actor, 403},
			"another tenant's": {c, stranger.actor, 422},
			"nobody's":         {c, "key_0190a1b2-0000-7000-8000-000000000001", 422},
		} {
			a := create(try.by, "refused", try.as)
			if a.Code != try.code || !bytes.Contains(a.Raw, []byte("settings.commands_as")) {
				t.Errorf("%s: %d %s", name, a.Code, a.Raw)
			}
		}
		in := c.ingress(c.actor)
		source := strings.TrimPrefix(in.path, "/in/")
		// Such a caller cannot change a source that other callers set up: with a new credential it could submit commands.
		for what, a := range map[string]*answer{
			"rotated":  weak.send("POST", "/v1/sources/"+source+"/rotate", object{}),
			"changed":  weak.send("PATCH", "/v1/sources/"+source, object{"description": "mine"}),
			"borrowed": create(weak, "again", c.actor),
		} {
			if a.Code != 403 {
				t.Errorf("%s: %d %s", what, a.Code, a.Raw)
			}
		}
		own := create(weak, "own", peer.actor) // whose rights weak has
		c.expect(own, 201)
		var made struct{ ID string }
		if err := json.Unmarshal(own.Raw, &made); err != nil {
			t.Fatal(err)
		}
		if a := weak.send("PATCH", "/v1/sources/"+made.ID, object{"settings": object{"commands_as": c.actor}}); a.Code != 403 {
			t.Errorf("changed to more rights: %d %s", a.Code, a.Raw)
		}
		c.expect(c.send("POST", "/v1/sources/"+source+"/rotate", object{}), 200)
		c.expect(weak.send("PATCH", "/v1/sources/"+made.ID, object{"settings": object{"commands_as": nil}}), 200)
		c.expect(c.send("DELETE", "/v1/keys/"+peer.actor, nil), 204)
		c.expect(create(c, "revoked", peer.actor), 422)

		want := []struct{ actor, channel, reason string }{
			{c.actor, "in:" + source, "commands_as is set to " + c.actor}, {weak.actor, "in:" + made.ID, "commands_as is set to " + peer.actor},
			{c.actor, "in:" + source, "the source is changed, commands_as stays " + c.actor}, {weak.actor, "in:" + made.ID, "commands_as is removed"},
		}
		for _, it := range c.evidence("") {
			if it.Command != "source.commands_as" {
				continue
			}
			if len(want) == 0 || it.Actor != want[0].actor || it.Channel != want[0].channel || it.Reason != want[0].reason {
				t.Fatalf("evidence %+v, want %+v", it, want)
			}
			want = want[1:]
		}
		if len(want) > 0 {
			t.Errorf("no evidence of %+v", want)
		}
	})
}

// TestIngressHasTheRightsOfItsKey: the rights of the source's key are checked at each delivery.
func TestIngressHasTheRightsOfItsKey(t *testing.T) {
	r := newRig(t, apptest.Options{})
	c := r.tenant(t)
	weak := c.colleague(godwit.ScopeRead)
	in := c.ingress(weak.actor)
	c.expect(in.deliver("delivery-0000000001", weak.envelope("effect.count", object{"id": "a"})), 403)
	c.expect(c.send("DELETE", "/v1/keys/"+weak.actor, nil), 204)
	c.expect(in.deliver("delivery-0000000002", weak.envelope("probe.echo", object{})), 403)
	c.expect(c.send("POST", "/v1/sources", object{"name": "bad", "scheme": "bearer", "settings": object{"commands_as": "me"}}), 422)
}
