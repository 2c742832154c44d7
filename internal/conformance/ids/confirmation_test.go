package ids

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// awaiting submits a command that has to be confirmed.
func (c *caller) awaiting(name string, args object) *answer {
	c.t.Helper()
	a := c.must(202, name, args)
	if a.Status != "processing" || a.Substatus != "awaiting_confirmation" || a.Token == "" || a.ExpiresAt.IsZero() {
		c.t.Fatalf("not asked to confirm: %s", a.Raw)
	}
	return a
}

// confirmationRows: a destructive command waits for its confirmation.
func confirmationRows(t *testing.T, r *rig) {
	t.Run("waits", func(t *testing.T) {
		trace.Covers(t, "IDS-CNF-1", "IDS-CNF-5")
		c := r.tenant(t)
		asked := c.awaiting("effect.remove", object{"id": "a"})
		equal(t, "runs before", c.runs("a"), 0)
		done := c.confirm(asked.CommandID, asked.Token)
		c.expect(done, 200)
		equal(t, "status", done.Status, "executed")
		c.once("a")
		repeat := c.must(200, "effect.remove", object{"id": "a"})
		same(t, done, repeat)
		equal(t, "token for a repeat", repeat.Token, "")
		c.once("a")
	})
	t.Run("bound", func(t *testing.T) {
		trace.Covers(t, "IDS-CNF-2")
		c := r.tenant(t)
		x, y := c.awaiting("effect.remove", object{"id": "x"}), c.awaiting("effect.remove", object{"id": "y"})
		other := c.envelope("effect.remove", object{"id": "x"})
		c.expect(c.post(other), 202) // the same key under another id
		for what, a := range map[string]*answer{
			"another command's":           c.confirm(y.CommandID, x.Token),
			"the same key's, another id":  c.confirm(other["command_id"].(string), x.Token),
			"nobody's":                    c.confirm(x.CommandID, "cft_"+strings.Repeat("A", 43)),
			"an empty one":                c.confirm(x.CommandID, ""),
			"another tenant's credential": r.tenant(t).confirm(x.CommandID, x.Token),
		} {
			if a.Code != 403 && a.Code != 422 {
				t.Errorf("token of %s: %d\n%s", what, a.Code, a.Raw)
			}
		}
		equal(t, "runs", c.runs("x")+c.runs("y"), 0)
		c.expect(c.confirm(x.CommandID, x.Token), 200)
		c.expect(c.confirm(y.CommandID, y.Token), 200)
		// Nor does a token of the window before count in the next.
		r.Advance(31 * 24 * time.Hour)
		c.awaiting("effect.remove", object{"id": "x"})
		equal(t, "an old token", c.confirm(x.CommandID, x.Token).Code, 403)
		c.once("x")
	})
	t.Run("single use", func(t *testing.T) {
		trace.Covers(t, "IDS-CNF-3")
		c := r.tenant(t)
		asked := c.awaiting("effect.remove", object{"id": "a"})
		done := c.confirm(asked.CommandID, asked.Token)
		c.expect(done, 200)
		same(t, done, c.confirm(asked.CommandID, asked.Token))
		c.once("a")
		asked = c.awaiting("effect.remove", object{"id": "b"})
		answers := make(chan *answer, 20)
		for range 20 {
			go func() { answers <- c.confirm(asked.CommandID, asked.Token) }()
		}
		first := 0
		for range 20 {
			a := <-answers
			if a.Code != 200 && a.Code != 202 {
				t.Errorf("confirmed at once: %d\n%s", a.Code, a.Raw)
			}
			if a.Executed {
				first++
			}
		}
		equal(t, "confirmations that executed", first, 1)
		c.once("b")
	})
	t.Run("short-lived", func(t *testing.T) {
		trace.Covers(t, "IDS-CNF-4")
		c := r.tenant(t)
		asked := c.awaiting("effect.remove", object{"id": "a"})
		equal(t, "life", asked.ExpiresAt.Sub(r.Clock.Now()), 5*time.Minute)
		r.Advance(5*time.Minute + time.Second)
		late := c.confirm(asked.CommandID, asked.Token)
		if late.Code < 400 || late.Reason != "confirmation_expired" {
			t.Errorf("late: %d %s", late.Code, late.Raw)
		}
		equal(t, "runs", c.runs("a"), 0)
		again := c.awaiting("effect.remove", object{"id": "a"})
		if again.Token == asked.Token || again.Decision != "first_seen" {
			t.Errorf("submitted anew: %s", again.Raw)
		}
		equal(t, "the old token", c.confirm(again.CommandID, asked.Token).Code, 403)
		r.Advance(4*time.Minute + 59*time.Second)
		c.expect(c.confirm(again.CommandID, again.Token), 200)
		c.once("a")

		cfg := r.Config
		cfg.Listen, cfg.Data, cfg.Store, cfg.Commands.ConfirmWithin = "127.0.0.1:0", t.TempDir(), "sqlite", config.Duration(15*time.Minute+time.Second)
		if _, err := app.New(context.Background(), cfg, app.Dependencies{}); err == nil {
			t.Error("a server starts whose tokens live longer than 15 minutes")
		}
	})
	t.Run("not bypassed, not asked again", func(t *testing.T) {
		trace.Covers(t, "IDS-CNF-6", "IDS-CNF-7")
		c := r.tenant(t)
		asked := c.awaiting("effect.remove", object{"id": "a"})
		for range 5 {
			a := c.must(202, "effect.remove", object{"id": "a"})
			if a.Substatus != "awaiting_confirmation" || a.Token != "" || a.CommandID != asked.CommandID || !a.ExpiresAt.Equal(asked.ExpiresAt) {
				t.Errorf("repeat: %s", a.Raw)
			}
		}
		equal(t, "runs", c.runs("a"), 0)
		equal(t, "prompts", r.prompts.of(asked.CommandID), 1)
		c.expect(c.confirm(asked.CommandID, asked.Token), 200) // the first token still is the one
		c.once("a")
	})
	t.Run("step-up", func(t *testing.T) {
		trace.Covers(t, "IDS-CNF-8")
		c := r.tenant(t)
		second := c.colleague(godwit.ScopeIngest)
		r.Advance(time.Second) // an approver's key is older than the command
		x, y := c.awaiting("effect.admin", object{"id": "x"}), c.awaiting("effect.admin", object{"id": "y"})
		approve := func(by *caller, id string) *answer {
			return by.send("POST", "/ids/v1/commands/"+id+"/step-up", object{})
		}
		if own := approve(c, x.CommandID); own.Code != 403 || own.StepUpToken != "" {
			t.Errorf("approved by oneself: %d %s", own.Code, own.Raw)
		}
		consent := approve(second, x.CommandID)
		c.expect(consent, 200)
		for what, a := range map[string]*answer{
			"none":                           c.confirm(x.CommandID, x.Token),
			"another command's":              c.confirm(y.CommandID, y.Token, object{"step_up_token": consent.StepUpToken}),
			"the confirmation":               c.confirm(x.CommandID, x.Token, object{"step_up_token": x.Token}),
			"the consent as a confirmation":  c.confirm(x.CommandID, consent.StepUpToken, object{"step_up_token": consent.StepUpToken}),
			"both of another command":        c.confirm(y.CommandID, x.Token, object{"step_up_token": consent.StepUpToken}),
			"another tenant's consent to it": approve(r.tenant(t), y.CommandID),
		} {
			if a.Code != 403 && a.Code != 404 {
				t.Errorf("step-up with %s: %d\n%s", what, a.Code, a.Raw)
			}
		}
		equal(t, "runs", c.runs("x")+c.runs("y"), 0)
		done := c.confirm(x.CommandID, x.Token, object{"step_up_token": consent.StepUpToken})
		c.expect(done, 200)
		same(t, done, c.confirm(x.CommandID, x.Token, object{"step_up_token": consent.StepUpToken}))
		same(t, done, c.must(200, "effect.admin", object{"id": "x"}))
		c.once("x")
		r.Advance(6 * time.Minute)
		if late := approve(second, y.CommandID); late.Code < 400 {
			t.Errorf("approved too late: %d %s", late.Code, late.Raw)
		}
	})
	t.Run("the approver is another principal", func(t *testing.T) {
		trace.Covers(t, "IDS-CNF-8")
		c := r.tenant(t)
		mint := func(by *caller, more object) *caller {
			body := object{"name": "made", "scopes": []string{"ingest", "manage"}}
			maps.Copy(body, more)
			a := by.send("POST", "/v1/keys", body)
			c.expect(a, 201)
			var made struct{ Token string }
			if err := json.Unmarshal(a.Raw, &made); err != nil || made.Token == "" {
				t.Fatalf("key: %v %s", err, a.Raw)
			}
			return r.caller(t, made.Token)
		}
		other := c.colleague(godwit.ScopeIngest, godwit.ScopeManage)
		child := mint(c, nil)
		grandchild := mint(child, nil)
		takenOver := mint(c, object{"replaces": other.actor}) // acts as other does, and c has seen it
		r.Advance(time.Second)
		x := c.awaiting("effect.admin", object{"id": "x"})
		late := c.colleague(godwit.ScopeIngest)
		approve := func(by *caller, id string) *answer {
			return by.send("POST", "/ids/v1/commands/"+id+"/step-up", object{})
		}
		byChild, byHeir := child.awaiting("effect.admin", object{"id": "y"}), takenOver.awaiting("effect.admin", object{"id": "z"})
		for what, a := range map[string]*answer{
			"made by the submitter":              approve(child, x.CommandID),
			"made by a key of the submitter's":   approve(grandchild, x.CommandID),
			"a principal taken over":             approve(takenOver, x.CommandID),
			"younger than the command":           approve(late, x.CommandID),
			"the maker of the submitter":         approve(c, byChild.CommandID),
			"the maker of the submitter's heir":  approve(c, byHeir.CommandID),
			"made by the submitter, at once":     approve(mint(c, nil), x.CommandID),
			"made by the submitter, by a change": approve(mint(child, nil), x.CommandID),
		} {
			if a.Code != 403 || a.StepUpToken != "" || !strings.Contains(string(a.Raw), "self_approval") {
				t.Errorf("approved by a key %s: %d %s", what, a.Code, a.Raw)
			}
		}
		consent := approve(other, x.CommandID)
		c.expect(consent, 200)
		c.expect(c.confirm(x.CommandID, x.Token, object{"step_up_token": consent.StepUpToken}), 200)
		c.once("x")
	})
	t.Run("tokens", func(t *testing.T) {
		trace.Covers(t, "IDS-CNF-9")
		c := r.tenant(t)
		second := c.colleague(godwit.ScopeIngest)
		r.Advance(time.Second)
		seen := map[string]bool{}
		for i := range 5 {
			asked := c.awaiting("effect.admin", object{"id": fmt.Sprint(i)})
			consent := second.send("POST", "/ids/v1/commands/"+asked.CommandID+"/step-up", object{})
			for _, token := range []string{asked.Token, consent.StepUpToken} {
				bits, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "cft_"))
				if err != nil || len(bits)*8 < 128 || seen[token] {
					t.Fatalf("token %q: %v", token, err)
				}
				seen[token] = true
				for _, text := range c.stored() {
					for _, form := range []string{token, string(bits), hex.EncodeToString(bits), base64.StdEncoding.EncodeToString(bits)} {
						if strings.Contains(text, form) {
							t.Errorf("the database holds the token %s", token)
						}
					}
				}
			}
		}
		comparedInConstantTime(t)
	})
}

var compares = regexp.MustCompile(`(TokenHash|StepUpHash|tokenHash\([^)]*\))\)?\s*[!=]=|[!=]=\s*(string\()?tokenHash|(Equal|Compare)\(.*([tT]okenHash|StepUpHash)`)

// comparedInConstantTime reads the source, because timing measurements would not be reliable: hashes of tokens are compared
// in one place.
func comparedInConstantTime(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("../../../command/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	places := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "subtle.ConstantTimeCompare(hash, tokenHash(") {
				places++
			} else if compares.MatchString(line) {
				t.Errorf("%s: %s", filepath.Base(name), strings.TrimSpace(line))
			}
		}
	}
	equal(t, "places that compare", places, 1)
}

// stored is everything that the database has of a tenant's commands, as text, sealed or not.
func (c *caller) stored() (all []string) {
	c.t.Helper()
	db := c.database(c.t)
	for _, table := range []string{"command_records", "evidence_items"} {
		rows, err := db.Query(fmt.Sprintf("SELECT * FROM %s WHERE tenant = '%s'", table, c.tenant))
		if err != nil {
			c.t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			c.t.Fatal(err)
		}
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				c.t.Fatal(err)
			}
			for _, v := range values {
				if b, ok := v.([]byte); ok {
					all = append(all, string(b))
				} else {
					all = append(all, fmt.Sprint(v))
				}
			}
		}
		if err := rows.Close(); err != nil {
			c.t.Fatal(err)
		}
	}
	if len(all) == 0 {
		c.t.Fatal("nothing is stored")
	}
	return all
}
