package receiver_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

// readVectors reads a file of the vectors that every language's tests read.
func readVectors(t testing.TB, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "spec", "vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestPublicStrings: every public case of a structured field is a key, or is refused as one.
func TestPublicStrings(t *testing.T) {
	trace.Covers(t, "IKH-SYN-2", "IKH-SYN-3", "EDS-KEY-2")
	policy, cases := receiver.KeyPolicy{Min: -1, Max: 1024}, 0
	for _, file := range []string{"item", "string", "string-generated", "token"} {
		var list []struct {
			Name       string
			Raw        []string
			HeaderType string `json:"header_type"`
			Expected   []any
			MustFail   bool `json:"must_fail"`
			CanFail    bool `json:"can_fail"`
		}
		readVectors(t, "structured-fields/"+file+".json", &list)
		for _, c := range list {
			if c.HeaderType != "item" || c.CanFail {
				continue
			}
			cases++
			var want string
			ok := false
			if !c.MustFail {
				want, ok = c.Expected[0].(string)
			}
			got, err := receiver.ParseKey(c.Raw, policy)
			if ok != (err == nil) || got != want {
				t.Errorf("%s: %q gives %q, %v; want %q", c.Name, c.Raw, got, err, want)
			}
		}
	}
	if cases < 200 {
		t.Errorf("only %d cases", cases)
	}
}

// TestKeyVectors: the verdicts on Idempotency-Key that every language's receiver gives.
func TestKeyVectors(t *testing.T) {
	trace.Covers(t, "IKH-SYN-2", "IKH-SYN-3", "IKH-SYN-5", "IKH-SEC-4")
	var file struct {
		Cases []struct {
			Name    string
			Lines   []string
			Lenient bool
			Key     *string
			Error   receiver.ProblemCode
		}
	}
	readVectors(t, "idempotency-keys.json", &file)
	for _, c := range file.Cases {
		got, err := receiver.ParseKey(c.Lines, receiver.KeyPolicy{Lenient: c.Lenient})
		if c.Key != nil {
			if err != nil || got != *c.Key {
				t.Errorf("%s: %q, %v; want %q", c.Name, got, err, *c.Key)
			}
			continue
		}
		if fault, ok := errors.AsType[*receiver.DeliveryError](err); !ok || fault.Code != c.Error {
			t.Errorf("%s: %q, %v; want %s", c.Name, got, err, c.Error)
		}
	}
	if len(file.Cases) < 30 {
		t.Errorf("only %d cases", len(file.Cases))
	}
}

// keyed sends a request by eds whose key has these lines. It is signed with them, so that only the key can be at fault.
func (g *rig) keyed(e event, lines ...string) answer {
	g.t.Helper()
	e = e.withDefaults()
	req := g.request(e)
	req.Header["Idempotency-Key"] = lines
	if len(lines) == 0 {
		delete(req.Header, "Idempotency-Key")
	}
	g.signEDS(req, e)
	return g.do(req)
}

// signWithoutKey signs what can be signed without a key.
func signWithoutKey(t testing.TB, req *http.Request, e event, g *rig) {
	t.Helper()
	secret, err := base64.StdEncoding.DecodeString(edsSecret("shop-1"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := httpsig.NewHMACKey("shop-1", secret)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := httpsig.NewSigner("@method", "@target-uri", "content-digest", "content-type")
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Digest", httpsig.ContentDigest([]byte(e.body)))
	if err := signer.SignRequest(req, httpsig.Params{Keys: []httpsig.Key{key}, Created: g.clock.Now(), Nonce: rand.Text()}); err != nil {
		t.Fatal(err)
	}
}

func TestMalformedKeys(t *testing.T) {
	trace.Covers(t, "IKH-SYN-2", "IKH-SYN-3", "IKH-SYN-5", "IKH-SEC-1", "IKH-SEC-5", "IKH-SEC-4", "IKH-ERR-7")
	g := newRig(t)
	long := strings.Repeat("k", 255)
	for line, code := range map[string]receiver.ProblemCode{
		`"a\n-is-no-escape-here"`:              receiver.CodeKeyMalformed,
		`"unterminated-key-0123456789`:         receiver.CodeKeyMalformed,
		`"a"b`:                                 receiver.CodeKeyMalformed,
		`abc-def-ghi-jkl-mno-pqr`:              receiver.CodeKeyMalformed, // a token
		`1234567890123456`:                     receiver.CodeKeyMalformed,
		`123456789012.125`:                     receiver.CodeKeyMalformed,
		`?1`:                                   receiver.CodeKeyMalformed,
		`:aGVsbG8gaGVsbG8gaGVsbG8=:`:           receiver.CodeKeyMalformed,
		`("a" "b")`:                            receiver.CodeKeyMalformed,
		`8e03978e-40d5-43e8-bc93-6894a57f9324`: receiver.CodeKeyMalformed, // a bare UUID
		`"key-0123456789abcdef", "key-0123456789"`: receiver.CodeKeyMalformed,
		`""`:                receiver.CodeKeyLength,
		`"fifteen-chars-x"`: receiver.CodeKeyLength,
		`"` + long + `k"`:   receiver.CodeKeyLength,
	} {
		for range 2 { // sent again uncorrected it fails alike
			g.wantProblem(g.keyed(event{id: "x"}, line), 400, code)
		}
	}
	g.wantCalls(0)
	if n := g.memoryLen(); n != 14*2 { // the nonces, and no key
		t.Errorf("%d things were remembered", n)
	}
	for _, line := range []string{
		`"8e03978e-40d5-43e8-bc93-6894a57f9324"`, `"clkyoesmbgybucifusbbtdsbohtyuuwz"`, `"sixteen-chars-xy"`, `"` + long + `"`,
		`"abc def ghi jkl mno"`, `"a\"b-0123456789abcdef"`, `"a\\b-0123456789abcdef"`, `"with-parameters-x";v=1`,
	} {
		g.want(g.keyed(event{id: "x"}, line), 204)
	}
	g.wantCalls(8)
}

// TestExamplesOfKeys are the two of the draft.
func TestExamplesOfKeys(t *testing.T) {
	trace.Covers(t, "IKH-SYN-6", "IKH-SYN-7")
	for _, key := range []string{"8e03978e-40d5-43e8-bc93-6894a57f9324", "clkyoesmbgybucifusbbtdsbohtyuuwz"} {
		g := newRig(t)
		g.want(g.do(g.eds(event{id: key})), 204)
		if a := g.do(g.eds(event{id: key})); a.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s was not recognised", key)
		}
		g.wantCalls(1)
	}
}

func TestSeveralKeyLines(t *testing.T) {
	trace.Covers(t, "IKH-SYN-5")
	g := newRig(t)
	line := `"` + id("x") + `"`
	g.wantProblem(g.keyed(event{id: "x"}, line, line), 400, receiver.CodeKeyMalformed)
	g.wantCalls(0)
}

// TestMissingKey: in the header and nowhere else, under its own name and no other.
func TestMissingKey(t *testing.T) {
	trace.Covers(t, "IKH-ERR-1", "IKH-ERR-2", "IKH-DEF-1", "IKH-REG-1", "IKH-ERR-7", "EDS-PRB-1")
	g := newRig(t)
	key := id("x")
	for name, place := range map[string]func(*http.Request){
		"nowhere":        func(*http.Request) {},
		"in the query":   func(req *http.Request) { req.URL.RawQuery = "Idempotency-Key=" + key },
		"in the trailer": func(req *http.Request) { req.Trailer = http.Header{"Idempotency-Key": {`"` + key + `"`}} },
		"another name":   func(req *http.Request) { req.Header.Set("X-Idempotency-Key", `"`+key+`"`) },
		"a vendor's":     func(req *http.Request) { req.Header.Set("PayPal-Request-Id", `"`+key+`"`) },
		"a request's id": func(req *http.Request) { req.Header.Set("X-Request-Id", `"`+key+`"`) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				e := event{body: `{"idempotency_key":"` + key + `"}`}.withDefaults()
				req := g.request(e)
				place(req)
				if req.Trailer != nil {
					req.Body, req.ContentLength = io.NopCloser(strings.NewReader(e.body)), -1
				}
				signWithoutKey(t, req, e, g)
				a := g.do(req)
				g.wantProblem(a, 400, receiver.CodeKeyMissing)
				if !strings.Contains(a.Body, "/docs/idempotency") {
					t.Errorf("no link in %s", a.Body)
				}
			}
		})
	}
	g.wantCalls(0)
	req := g.eds(event{id: key})
	req.Header["idempotency-KEY"] = req.Header["Idempotency-Key"] // as it goes over the wire
	delete(req.Header, "Idempotency-Key")
	g.want(g.do(req), 204)
	g.wantCalls(1)
}

func TestLenientKeys(t *testing.T) {
	g := newRig(t, func(o *receiver.Options) { o.Key.Lenient = true })
	g.want(g.keyed(event{id: "x"}, "8e03978e-40d5-43e8-bc93-6894a57f9324"), 204)
	a := g.want(g.keyed(event{id: "x"}, `"8e03978e-40d5-43e8-bc93-6894a57f9324"`), 204)
	if a.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("the quoted key is another than the bare one")
	}
	g.wantCalls(1)
	g.want(g.keyed(event{id: "x"}, "a b c d e f g h i j k"), 400)
}

// TestOpaqueKeys: a key is compared and never interpreted.
func TestOpaqueKeys(t *testing.T) {
	trace.Covers(t, "IKH-SEC-2")
	g := newRig(t)
	for _, line := range []string{
		`"' OR 1=1 --          "`, `"../../../../../etc/passwd"`, `"a\"b; DROP TABLE x"`, `"%00%00%00%00%00%00%00"`, `"{{7*7}} {{7*7}} {{7*7}}"`,
		`"$(reboot) $(reboot)"`, `"<script>alert(1)</script>"`,
	} {
		before := g.calls.Load()
		g.want(g.keyed(event{id: "x"}, line), 204)
		if a := g.want(g.keyed(event{id: "x"}, line), 204); a.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s was not recognised", line)
		}
		if g.calls.Load() != before+1 {
			t.Errorf("%s ran %d handlers", line, g.calls.Load()-before)
		}
	}
	if strings.Contains(g.log.String(), "DROP TABLE") {
		t.Error("a key is in the log")
	}
}
