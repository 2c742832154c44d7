package cybercube

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

var secretForm = regexp.MustCompile(`whsec_[A-Za-z0-9_-]{43}`)

// rotate first advances the clock by a second, because secrets of one instant have no order.
func (r *rig) rotate(ep endpoint, members object) object {
	r.t.Helper()
	r.Advance(time.Second)
	c := apptest.Call{Method: "POST", Path: base + "/endpoints/" + ep.ID + "/rotate-secret"}
	if members != nil {
		c.Body = members
	}
	return r.data(200, c)
}

// next publishes an event and returns the request that it makes.
func (r *rig) next(path string) apptest.Request {
	r.t.Helper()
	n := len(r.sink.Requests(path))
	r.publish("project.created")
	return r.sink.WaitOn(path, n+1)[n]
}

func TestSecretForm(t *testing.T) {
	trace.Covers(t, "CCW-SEC-1", "CCW-SEC-3")
	r := newRig(t, apptest.Options{})
	seen := map[string]bool{}
	for range 20 {
		s := r.endpoint("/a").Secret
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
		if secretForm.FindString(s) != s || len(s) != 49 || err != nil || len(raw) != 32 || seen[s] {
			t.Errorf("secret %q of one of two endpoints with the same URL", s)
		}
		seen[s] = true
	}
}

// TestSecretIsShownOnce looks for it in every answer about the endpoint, and for its hash and hint where they belong.
func TestSecretIsShownOnce(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-SEC-7", "CCW-SEC-6", "CCW-SEC-5", "CCW-API-3")
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(404))
		ep := r.endpoint("/a")
		r.publish("project.created")
		r.settle()
		r.Advance(time.Second)
		at := base + "/endpoints/" + ep.ID
		key := map[string]string{"Idempotency-Key": `"8e03978e-40d5-43e8-bc93-6894a57f9324"`}
		rotate := apptest.Call{Method: "POST", Path: at + "/rotate-secret", Header: key}
		rotated := r.data(200, rotate)["secret"].(string)
		if secretForm.FindString(rotated) != rotated || rotated == ep.Secret {
			t.Errorf("rotated to %q", rotated)
		}
		for _, c := range []apptest.Call{
			{Path: at}, {Path: base + "/endpoints"}, {Method: "PATCH", Path: at, Body: object{"description": "x"}},
			{Path: at + "/logs"}, {Path: at + "/failures"}, {Path: at + "/failures?format=ndjson"},
			{Path: at + "/test", Body: object{}}, rotate, {Path: "/v1/endpoints/" + ep.ID},
		} {
			if got := r.want(200, c); secretForm.Match(got.Body) {
				t.Errorf("%s %s shows a secret: %s", c.Method, c.Path, got.Body)
			}
		}
		equal(t, "hint", r.show(ep)["secret_hint"].(string), rotated[45:])
		secrets, err := r.App.Management().Secrets.List(context.Background(), r.Tenant, r.stored(ep).ID)
		if err != nil || len(secrets) != 2 {
			t.Fatalf("%d secrets, %v", len(secrets), err)
		}
		for i, s := range []string{rotated, ep.Secret} {
			sum := sha256.Sum256([]byte(s))
			equal(t, "hash", secrets[i].Hash, hex.EncodeToString(sum[:]))
		}
		var known struct{ ID string }
		r.want(201, apptest.Call{Path: "/v1/endpoints", Body: object{"url": r.sink.URL("/b"), "profile": "cybercube", "secret": testSecret}}).JSON(t, &known)
		equal(t, "hint of the vector", r.show(endpoint{ID: known.ID})["secret_hint"].(string), "kZWY")
		secrets, err = r.App.Management().Secrets.List(context.Background(), r.Tenant, r.stored(endpoint{ID: known.ID}).ID)
		if err != nil || secrets[0].Hash != "c371e6d4ac451b41d570712116f78b1e07846c7642dedd7e5dd2a26dbb4d6ad4" {
			t.Errorf("hash of the vector %q, %v", secrets[0].Hash, err)
		}
	})
}

// TestRotation: for a day both secrets sign, the new one first; then only the new one.
func TestRotation(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "CCW-SEC-8", "CCW-SEC-9", "CCW-SEC-10", "CCW-SEC-15", "CCW-API-14")
		r := newRig(t, o)
		ep := r.endpoint("/a")
		equal(t, "age", r.show(ep)["secret_created_at"].(string), "2026-07-01T12:00:00Z")
		r.pass(time.Hour)
		rotated := r.rotate(ep, nil)
		second := rotated["secret"].(string)
		sameJSON(t, "answer", rotated, object{"secret": second, "previous_secret_valid_until": "2026-07-02T13:00:01Z"})
		equal(t, "age", r.show(ep)["secret_created_at"].(string), "2026-07-01T13:00:01Z")
		both := func(what string, want ...string) {
			t.Helper()
			equal(t, what, strings.Join(signedBy(r.next("/a"), ep.Secret, second), " "), strings.Join(want, " "))
		}
		both("at once", second, ep.Secret)
		r.pass(24*time.Hour - time.Second)
		both("a second before the end", second, ep.Secret)
		r.pass(time.Second)
		both("after a day", second)
	})
}

func TestSecondRotationDropsTheOldest(t *testing.T) {
	trace.Covers(t, "CCW-API-14")
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	second := r.rotate(ep, nil)["secret"].(string)
	third := r.rotate(ep, nil)["secret"].(string)
	equal(t, "signed by", strings.Join(signedBy(r.next("/a"), ep.Secret, second, third), " "), third+" "+second)
}

func TestRevocation(t *testing.T) {
	trace.Covers(t, "CCW-SEC-11")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/a", apptest.Status(500), ok)
	ep := r.endpoint("/a")
	r.publish("project.created")
	r.settle()
	answer := r.rotate(ep, object{"revoke_previous": true})
	second := answer["secret"].(string)
	equal(t, "valid until", answer["previous_secret_valid_until"].(string), "2026-07-01T12:00:01Z")
	equal(t, "signed by", strings.Join(signedBy(r.next("/a"), ep.Secret, second), " "), second)
	r.pass(time.Minute)
	got := r.sink.Requests("/a")
	equal(t, "the retry is signed by", strings.Join(signedBy(got[len(got)-1], ep.Secret, second), " "), second)
	// Deleting the endpoint ends all its secrets.
	r.want(204, apptest.Call{Method: "DELETE", Path: base + "/endpoints/" + ep.ID})
	r.publish("project.created")
	r.pass(48 * time.Hour)
	equal(t, "requests", len(r.sink.Requests("/a")), 3)
}

// TestRunbook follows the documented procedure to change a secret; the receiver can verify every request.
func TestRunbook(t *testing.T) {
	trace.Covers(t, "CCW-SEC-14")
	page, err := os.ReadFile("../../../docs/cybercube.md")
	if err != nil {
		t.Fatal(err)
	}
	section := string(page[bytes.Index(page, []byte("## Rotate the secret")):])
	for _, step := range []string{"rotate-secret", "The safe order: rotate", "configure the receiver to accept both", "verify with the new one", "remove the old one"} {
		if !strings.Contains(strings.Join(strings.Fields(section), " "), step) {
			t.Errorf("the page does not say %q", step)
		}
	}
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	accepts := []string{ep.Secret}
	check := func(what, newest string) {
		t.Helper()
		by := signedBy(r.next("/a"), accepts...)
		found := false
		for _, s := range by {
			found = found || s == newest
		}
		if !found {
			t.Errorf("%s: none of the receiver's secrets fits", what)
		}
	}
	check("before", ep.Secret)
	second := r.rotate(ep, nil)["secret"].(string)
	check("rotated, receiver has the old one", ep.Secret)
	accepts = []string{second, ep.Secret}
	check("receiver has both", second)
	accepts = []string{second}
	check("receiver has the new one", second)
	r.pass(25 * time.Hour)
	check("a day later", second)
}

// TestSecretsAtRest: the store holds no readable secret. With its key ring a restarted server goes on signing, with another
// it does not.
func TestSecretsAtRest(t *testing.T) {
	trace.Covers(t, "CCW-SEC-4")
	r := newRig(t, apptest.Options{})
	ep := r.endpoint("/a")
	second := r.rotate(ep, nil)["secret"].(string)
	r.next("/a")
	r = r.again(apptest.Options{})
	r.Advance(time.Second) // the attempts of the former process have left the endpoint's second
	equal(t, "after a restart", strings.Join(signedBy(r.next("/a"), ep.Secret, second), " "), second+" "+ep.Secret)
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(second[6:])
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(r.Config.Data, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files++
		for _, s := range [][]byte{[]byte(ep.Secret), []byte(second), []byte(second[6:]), raw} {
			if bytes.Contains(text, s) {
				t.Errorf("%s holds a secret", filepath.Base(path))
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files, %v", files, err)
	}
	// A server with another key ring cannot decrypt the secrets, and does not start.
	other := r.Config
	other.Keyring = app.GenerateRing()
	if _, err := app.New(t.Context(), other, app.Dependencies{Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Fatal("a server starts with a key ring that is not the store's own")
	}
}

// TestSecretsAreNotLogged runs every operation on an endpoint at the debug log level.
func TestSecretsAreNotLogged(t *testing.T) {
	trace.Covers(t, "CCW-SEC-13")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/a", apptest.Status(500))
	ep := r.endpoint("/a")
	r.publish("project.created")
	r.settle()
	r.rotate(ep, nil)
	r.rotate(ep, object{"revoke_previous": true})
	r.want(400, apptest.Call{Path: base + "/endpoints", Body: object{"url": testSecret, "secret": testSecret}})
	r.want(200, apptest.Call{Path: base + "/endpoints/" + ep.ID + "/test", Body: object{}})
	r.pass(time.Minute)
	r.patch(ep, object{"status": "paused"})
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if s := secretForm.FindString(r.Log.String()); s != "" {
		t.Errorf("the log holds a secret: %s", s)
	}
	if !r.Log.Has("level=DEBUG") && !r.Log.Has("msg=attempt") {
		t.Errorf("the log says nothing:\n%s", r.Log)
	}
}
