package cybercube_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/cybercube"
)

const (
	secret   = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	older    = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA"
	now      = int64(1737100000)
	fullBody = `{"id":"evt_01JHS0EXAMPLE00000000000AB","type":"project.created","api_version":"2026-01-01","created_at":"2026-01-17T10:00:00.000Z",` +
		`"data":{"object":{"id":"PRJ-X2M8KD-F","n":1.50},"previous_attributes":{"n":1}},"account_id":"ACC-9F4K7Q-T","livemode":true}`
)

func at(seconds int64) func() time.Time { return func() time.Time { return time.Unix(seconds, 0) } }

func newWebhooks(t testing.TB, options ...cybercube.Option) *cybercube.Webhooks {
	t.Helper()
	w, err := cybercube.New(secret, append([]cybercube.Option{cybercube.WithClock(at(now))}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestSecretFormat(t *testing.T) {
	for _, s := range []string{"", "x", "WHSEC_abc", "sk_whsec_"} {
		if _, err := cybercube.New(s); err == nil || err.Error() != "Invalid webhook secret format" || !errors.Is(err, cybercube.ErrSecretFormat) {
			t.Errorf("%q: %v", s, err)
		}
	}
	if _, err := cybercube.New(secret, cybercube.WithSecret("x")); !errors.Is(err, cybercube.ErrSecretFormat) {
		t.Errorf("second secret: %v", err)
	}
}

// TestVectors: the fixtures that every language's library is held to.
func TestVectors(t *testing.T) {
	trace.Covers(t, "CCW-SDK-11", "CCW-SDK-10", "CCW-SDK-5", "CCW-SIG-7", "CCW-SIG-10", "CCW-SIG-11", "CCW-SIG-12", "CCW-SIG-13", "CCW-SIG-15",
		"CCW-SEC-14", "CCW-SIG-16")
	text, err := os.ReadFile(filepath.Join("..", "..", "spec", "vectors", "cybercube-signatures.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Sign []struct {
			Name, Secret, Body, Signature string
			Timestamp                     int64
			BodyBase64                    []byte `json:"body_base64"`
		}
		Verify []struct {
			Name                       string
			Secrets                    []string
			Now                        int64
			Timestamp, Signature, Body string
			Valid                      bool
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Verify {
		options := []cybercube.Option{cybercube.WithClock(at(c.Now))}
		for _, s := range c.Secrets[1:] {
			options = append(options, cybercube.WithSecret(s))
		}
		w, err := cybercube.New(c.Secrets[0], options...)
		if err != nil {
			t.Fatal(err)
		}
		event, err := w.ConstructEvent([]byte(c.Body), c.Signature, c.Timestamp)
		if (err == nil) != c.Valid || (event == nil) == c.Valid {
			t.Errorf("%s: %v, %v", c.Name, event, err)
		}
		var refused *cybercube.SignatureError
		if !c.Valid && !errors.As(err, &refused) {
			t.Errorf("%s: %v (%T)", c.Name, err, err)
		}
		v := cybercube.Verify([]byte(c.Body), c.Signature, c.Timestamp, c.Secrets[0], options...)
		if v.Valid != c.Valid || (v.Error == "") != c.Valid {
			t.Errorf("%s: %+v", c.Name, v)
		}
	}
	for _, c := range file.Sign {
		body := []byte(c.Body)
		if c.BodyBase64 != nil {
			body = c.BodyBase64
		}
		if got := cybercube.Sign(body, c.Secret, c.Timestamp); got != c.Signature {
			t.Errorf("%s: %s", c.Name, got)
		}
	}
	if len(file.Verify) < 40 || len(file.Sign) < 7 {
		t.Errorf("only %d and %d cases", len(file.Verify), len(file.Sign))
	}
}

func TestErrors(t *testing.T) {
	trace.Covers(t, "CCW-SDK-5", "CCW-SDK-8", "CCW-SIG-8", "CCW-SIG-9", "CCW-SIG-10", "CCW-SIG-12", "CCW-SIG-13", "CCW-SIG-14")
	body, stamp := []byte(fullBody), strconv.FormatInt(now, 10)
	good := cybercube.Sign(body, secret, now)
	flipped := []byte(good)
	flipped[len(flipped)-1] ^= 1
	for _, c := range []struct{ signature, timestamp, sdk, function string }{
		{"md5=abc", stamp, "Invalid signature format", "Invalid signature format"},
		{"", stamp, "Invalid signature format", "Invalid signature format"},
		{"", "", "Invalid signature format", "Invalid signature format"}, // headers that are not there
		{"md5=abc", "1", "Invalid signature format", "Invalid signature format"},
		{good, "abc", "Invalid timestamp", "Invalid timestamp"},
		{good, "", "Invalid timestamp", "Invalid timestamp"},
		{good, "12x", "Invalid timestamp", "Invalid timestamp"},
		{cybercube.Sign(body, secret, now-301), strconv.FormatInt(now-301, 10), "Timestamp outside tolerance", "Timestamp outside tolerance window"},
		{cybercube.Sign(body, secret, now+301), strconv.FormatInt(now+301, 10), "Timestamp outside tolerance", "Timestamp outside tolerance window"},
		{"sha256=ab", stamp, "Signature mismatch", "Signature mismatch"},
		{"sha256=zz", stamp, "Signature mismatch", "Signature mismatch"},
		{"sha256=", stamp, "Signature mismatch", "Signature mismatch"},
		{string(flipped), stamp, "Signature mismatch", "Signature mismatch"},
	} {
		_, err := newWebhooks(t).ConstructEvent(body, c.signature, c.timestamp)
		var refused *cybercube.SignatureError
		if !errors.As(err, &refused) || refused.Message != c.sdk {
			t.Errorf("%q %q: %v, want %s", c.signature, c.timestamp, err, c.sdk)
		}
		if v := cybercube.Verify(body, c.signature, c.timestamp, secret, cybercube.WithClock(at(now))); v.Valid || v.Error != c.function {
			t.Errorf("%q %q: %+v, want %s", c.signature, c.timestamp, v, c.function)
		}
	}
}

func TestTolerance(t *testing.T) {
	trace.Covers(t, "CCW-SDK-3", "CCW-SIG-10")
	w, body := newWebhooks(t), []byte(fullBody)
	for _, c := range []struct {
		tolerance time.Duration
		age       int64
		ok        bool
	}{
		{300 * time.Second, 300, true}, {300 * time.Second, 301, false}, {300 * time.Second, -300, true}, {300 * time.Second, -301, false},
		{10 * time.Second, 10, true}, {10 * time.Second, 11, false}, {0, 0, true}, {0, 1, false}, {0, -1, false},
	} {
		_, err := w.ConstructEvent(body, cybercube.Sign(body, secret, now-c.age), strconv.FormatInt(now-c.age, 10), cybercube.WithTolerance(c.tolerance))
		if (err == nil) != c.ok {
			t.Errorf("tolerance %s, age %d: %v", c.tolerance, c.age, err)
		}
	}
}

func TestConstructEvent(t *testing.T) {
	trace.Covers(t, "CCW-SDK-6", "CCW-SDK-7", "CCW-EVT-32")
	w, stamp := newWebhooks(t), strconv.FormatInt(now, 10)
	construct := func(body string) (*cybercube.Event, error) {
		return w.ConstructEvent([]byte(body), cybercube.Sign([]byte(body), secret, now), stamp)
	}
	event, err := construct(fullBody)
	if err != nil {
		t.Fatal(err)
	}
	if event.ID != "evt_01JHS0EXAMPLE00000000000AB" || event.Type != "project.created" || event.APIVersion != "2026-01-01" || !event.Livemode ||
		event.CreatedAt != "2026-01-17T10:00:00.000Z" || event.AccountID != "ACC-9F4K7Q-T" || string(event.Data.PreviousAttributes) != `{"n":1}` {
		t.Errorf("event %+v", event)
	}
	again, err := json.Marshal(event)
	if err != nil || string(again) != fullBody {
		t.Errorf("written again: %s, %v", again, err)
	}
	if minimal, err := construct(`{"id":"e","type":"t","created_at":"c","data":{"object":{}}}`); err != nil || minimal.ID != "e" {
		t.Errorf("the minimal form: %+v, %v", minimal, err)
	}
	_, err = construct(`{"id":`)
	var refused *cybercube.SignatureError
	if err == nil || errors.As(err, &refused) {
		t.Errorf("no JSON: %v", err)
	}
	if _, err := w.ConstructEvent([]byte(`{"id":`), "sha256=00", stamp); !errors.As(err, &refused) {
		t.Errorf("no JSON and not signed: %v", err)
	}
	spaced := "{ \"id\" : \"e\",\n \"type\":\"t\" }"
	if _, err := construct(spaced); err != nil {
		t.Error(err)
	}
	var value any
	if err := json.Unmarshal([]byte(spaced), &value); err != nil {
		t.Fatal(err)
	}
	serialised, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.ConstructEvent(serialised, cybercube.Sign([]byte(spaced), secret, now), stamp); !errors.As(err, &refused) {
		t.Errorf("serialised again: %v", err)
	}
}

// TestRotation: the runbook's middle, in which both sides have both secrets or one of them.
func TestRotation(t *testing.T) {
	trace.Covers(t, "CCW-SEC-14", "CCW-SDK-10")
	body, stamp := []byte(fullBody), strconv.FormatInt(now, 10)
	both := newWebhooks(t, cybercube.WithSecret(older))
	for _, s := range []string{secret, older} {
		if _, err := both.ConstructEvent(body, cybercube.Sign(body, s, now), stamp); err != nil {
			t.Errorf("signed with %s…: %v", s[:10], err)
		}
	}
	onlyOld, err := cybercube.New(older, cybercube.WithClock(at(now)))
	if err != nil {
		t.Fatal(err)
	}
	list := cybercube.Sign(body, secret, now) + "," + cybercube.Sign(body, older, now)
	if _, err := onlyOld.ConstructEvent(body, list, stamp); err != nil {
		t.Error(err)
	}
}

// TestConstantTime: there is no comparison of signatures in the sources but that of crypto/hmac (and subtle).
func TestConstantTime(t *testing.T) {
	trace.Covers(t, "CCW-SIG-17")
	for _, folder := range []string{".", ".."} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				for _, name := range []string{"signature ==", "mac ==", "sum ==", "== signature", "== mac", "== want", "want ==", "bytes.Equal("} {
					if strings.Contains(line, name) && !strings.Contains(line, `== ""`) && !strings.Contains(line, "== nil") {
						t.Errorf("%s:%d compares: %s", file, i+1, line)
					}
				}
			}
		}
	}
	text, err := os.ReadFile("../secret.go")
	if err != nil || !bytes.Contains(text, []byte("hmac.Equal(")) {
		t.Error("MACs are not compared by hmac.Equal")
	}
}

func post(t testing.TB, h http.Handler, body string, sign bool) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest("POST", "https://hooks.example.com/", strings.NewReader(body))
	req.Header.Set("X-Webhook-Timestamp", strconv.FormatInt(now, 10))
	if sign {
		req.Header.Set("X-Webhook-Signature", cybercube.Sign([]byte(body), secret, now))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func TestSampleHandler(t *testing.T) {
	trace.Covers(t, "CCW-SDK-9", "CCW-RCV-1", "CCW-RCV-3")
	var seen *cybercube.Event
	h := newWebhooks(t).Handler(func(_ context.Context, e *cybercube.Event) error {
		switch e.Type {
		case "fails":
			return errors.New("secret detail")
		case "panics":
			panic("secret detail")
		}
		seen = e
		return nil
	})
	for _, c := range []struct {
		body   string
		sign   bool
		status int
		answer string
	}{
		{fullBody, true, 200, `{"received":true}`},
		{fullBody, false, 401, `{"error":"Invalid signature format"}`},
		{`{"type":"fails"}`, true, 500, `{"error":"Internal error"}`},
		{`{"type":"panics"}`, true, 500, `{"error":"Internal error"}`},
		{`{"type":`, true, 500, `{"error":"Internal error"}`},
		{strings.Repeat(" ", 1<<20+1), true, 413, `{"error":"Payload too large"}`},
	} {
		w := post(t, h, c.body, c.sign)
		if w.Code != c.status || w.Body.String() != c.answer || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%.40s: %d %s", c.body, w.Code, w.Body)
		}
	}
	if seen == nil || seen.Type != "project.created" {
		t.Errorf("handled %+v", seen)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d", w.Code)
	}
	broken := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader("x"), brokenReader{}))
	w = httptest.NewRecorder()
	h.ServeHTTP(w, broken)
	if w.Code != 400 {
		t.Errorf("a broken body: %d", w.Code)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRateLimit(t *testing.T) {
	trace.Covers(t, "CCW-LIM-12", "CCW-RCV-16")
	clock := time.Unix(now, 0)
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })
	h, err := cybercube.RateLimit(ok, cybercube.RateLimitOptions{Clock: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	send := func(from string) *httptest.ResponseRecorder {
		req := httptest.NewRequest("POST", "/", nil)
		req.RemoteAddr = from
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w
	}
	for i := 1; i <= 1000; i++ {
		w := send("203.0.113.9:1000")
		if w.Code != 200 || w.Header().Get("RateLimit-Remaining") != fmt.Sprint(1000-i) || w.Header().Get("RateLimit-Limit") != "1000" {
			t.Fatalf("request %d: %d %v", i, w.Code, w.Header())
		}
	}
	clock = clock.Add(30 * time.Second)
	w := send("203.0.113.9:2000")
	if w.Code != 429 || w.Body.String() != `{"error":"Rate limit exceeded"}` || w.Header().Get("RateLimit-Reset") != "30" || w.Header().Get("Retry-After") != "30" {
		t.Errorf("request 1001: %d %s %v", w.Code, w.Body, w.Header())
	}
	for name := range w.Header() {
		if strings.HasPrefix(name, "X-Ratelimit") {
			t.Errorf("legacy field %s", name)
		}
	}
	if w := send("203.0.113.10:1000"); w.Code != 200 {
		t.Errorf("another sender: %d", w.Code)
	}
	clock = clock.Add(30 * time.Second)
	if w := send("203.0.113.9:1000"); w.Code != 200 {
		t.Errorf("in the next minute: %d", w.Code)
	}
	for i := range 20_000 { // senders without end are forgotten again
		send(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	if w := send("no address"); w.Code != 200 {
		t.Errorf("without an address: %d", w.Code)
	}
	if _, err := cybercube.RateLimit(ok, cybercube.RateLimitOptions{Max: -1}); err == nil {
		t.Error("a bound below zero was taken")
	}
}

func TestSources(t *testing.T) {
	trace.Covers(t, "CCW-HTTP-17", "CCW-RCV-12")
	for _, document := range []string{
		`{"production":["203.0.113.0/24","2001:db8::/32","198.51.100.7"],"updated_at":"2026-01-01T00:00:00Z"}`,
		"# Production\n203.0.113.0/24\n2001:db8::/32 # six\n\n198.51.100.7\n",
	} {
		for ip, want := range map[string]bool{
			"203.0.113.9": true, "8.8.8.8": false, "203.0.114.0": false, "2001:db8::1": true, "2001:db9::1": false, "[2001:db8::1]": true,
			"::ffff:203.0.113.9": true, "198.51.100.7": true, "198.51.100.8": false, "": false, "nonsense": false, "203.0.113.9:80": false,
			"2001:db8::1%eth0": true,
		} {
			if got := cybercube.IsAllowedSource(ip, []byte(document)); got != want {
				t.Errorf("%q: %t", ip, got)
			}
		}
	}
	for _, document := range []string{"nonsense", `{"production":["300.1.1.1/8"]}`} {
		if _, err := cybercube.ParseSources([]byte(document)); err == nil || cybercube.IsAllowedSource("203.0.113.9", []byte(document)) {
			t.Errorf("%s was read: %v", document, err)
		}
	}
	if cybercube.IsAllowedSource("203.0.113.9", nil) {
		t.Error("nothing allows something")
	}
}

func TestValidateEvent(t *testing.T) {
	trace.Covers(t, "CCW-RCV-15", "CCW-EVT-32")
	const minimal = `{"id":"e","type":"t","created_at":"c","data":{}}`
	for body, want := range map[string]string{
		fullBody: "", minimal: "", `[]`: "the event is not a JSON object", `null`: "the event is not a JSON object", `{`: "the event is not a JSON object",
		`{"type":"t","created_at":"c","data":{}}`:                             "id is not a string",
		`{"id":1,"type":"t","created_at":"c","data":{}}`:                      "id is not a string",
		`{"id":"e","type":"t","created_at":"c","data":[]}`:                    "data is not an object",
		strings.Replace(minimal, `"id"`, `"livemode":"yes","id"`, 1):          "livemode is not a boolean",
		strings.Replace(minimal, `"id"`, `"account_id":{"$ne":null},"id"`, 1): "account_id is not a string",
	} {
		err := cybercube.ValidateEvent(&receiver.Delivery{Body: []byte(body)})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestValidationInAReceiver: rejected after verification, before the handler.
func TestValidationInAReceiver(t *testing.T) {
	trace.Covers(t, "CCW-RCV-15")
	calls := 0
	r, err := receiver.New(receiver.Options{
		Scheme: receiver.Cybercube{Secrets: []string{secret}}, Clock: at(now), Validate: cybercube.ValidateEvent,
		Handler: func(context.Context, *receiver.Delivery) (receiver.Result, error) { calls++; return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	wrong := `{"id":"e","type":"t","created_at":7,"data":{}}`
	if w := post(t, r, wrong, false); w.Code != 401 {
		t.Errorf("unsigned: %d", w.Code)
	}
	if w := post(t, r, wrong, true); w.Code != 400 || w.Body.String() != `{"error":"created_at is not a string"}` || calls != 0 {
		t.Errorf("wrong: %d %s, %d calls", w.Code, w.Body, calls)
	}
	if w := post(t, r, fullBody, true); w.Code != 200 || calls != 1 {
		t.Errorf("right: %d %s, %d calls", w.Code, w.Body, calls)
	}
}

func TestResultsAsJSON(t *testing.T) {
	trace.Covers(t, "CCW-IDM-3")
	for want, r := range map[string]cybercube.Result{
		`{"status":"duplicate","original":{"event_id":"e","processed_at":"2026-01-01T00:00:00Z","result":"ok"}}`: {
			Status: cybercube.StatusDuplicate, Original: &cybercube.ProcessedEvent{EventID: "e", ProcessedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Result: "ok"}},
		`{"status":"concurrent","message":"Event being processed"}`: {Status: cybercube.StatusConcurrent, Message: "Event being processed"},
		`{"status":"processed","result":"ok"}`:                      {Status: cybercube.StatusProcessed, Result: "ok"},
	} {
		got, err := json.Marshal(r)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v", got, err)
		}
		var back cybercube.Result
		if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, r) {
			t.Errorf("%+v, %v", back, err)
		}
	}
}
