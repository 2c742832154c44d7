package wellknown_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/api/wellknown"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
	"github.com/godwit-hq/godwit/internal/store/storetest"
	"github.com/godwit-hq/godwit/internal/trace"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type fixture struct {
	ring   *keyring.Ring
	t      *testing.T
	store  *sqlite.Store
	server *httptest.Server
	guard  *idempotency.Guard
	now    time.Time
	opened atomic.Int64 // how often private keys were read
	away   atomic.Bool  // private keys cannot be read
}

// countingKeys counts how often private keys are read.
type countingKeys struct {
	*sqlite.Store
	opened *atomic.Int64
	away   *atomic.Bool // the store cannot be read
}

func (k *countingKeys) Secrets(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID) ([]godwit.Secret, error) {
	k.opened.Add(1)
	if k.away.Load() {
		return nil, store.ErrUnavailable
	}
	return k.Store.Secrets(ctx, tenant, endpoint)
}

func newFixture(t *testing.T, tune func(*idempotency.Config)) *fixture {
	t.Helper()
	s, err := sqlite.Open(context.Background(), t.TempDir(), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	ring, err := keyring.Parse(keyring.Generate("k1"))
	must(t, err)
	log := slog.New(slog.DiscardHandler)
	problems := &problem.Writer{Log: log}
	cfg := idempotency.Config{Store: s, Ring: ring, Log: log, Problems: problems, Now: func() time.Time { return now }}
	if tune != nil {
		tune(&cfg)
	}
	f := &fixture{t: t, store: s, ring: ring, now: now}
	f.guard, err = idempotency.New(cfg)
	must(t, err)
	f.server = httptest.NewUnstartedServer(nil)
	h, err := wellknown.New(wellknown.Config{Keys: &countingKeys{s, &f.opened, &f.away}, Authority: f.server.Listener.Addr().String(), Ring: ring, Idempotency: f.guard, Problems: problems, Now: func() time.Time { return f.now },
		Addresses: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32")}})
	must(t, err)
	f.server.Config.Handler = h
	f.server.Start()
	t.Cleanup(f.server.Close)
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// get sends a request without credentials.
func (f *fixture) get(path string) (*http.Response, string) {
	f.t.Helper()
	resp, err := f.server.Client().Get(f.server.URL + path)
	must(f.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(f.t, err)
	return resp, string(body)
}

// value finds what the page says under a data attribute.
func value(t *testing.T, page, name string) string {
	t.Helper()
	m := regexp.MustCompile(`<span data-` + name + `>([^<]*)</span>`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page does not tell %s", name)
	}
	return m[1]
}

func TestIdempotencyPageTellsTheRunningConfig(t *testing.T) {
	trace.Covers(t, "IKH-RSP-3", "IKH-RSP-4", "IKH-UNQ-3", "IKH-EXP-2", "IKH-SEC-4")
	for name, tune := range map[string]func(*idempotency.Config){
		"defaults": nil,
		"tuned": func(c *idempotency.Config) {
			c.Window, c.Lease, c.Timeout = 36*time.Hour+30*time.Minute, 90*time.Second, 45*time.Second
			c.Format = idempotency.Format{MinLength: 20, MaxLength: 100}
			c.Fingerprint = idempotency.Fingerprint{Doc: "SHA-256 of the amount", Sum: idempotency.WholePayload.Sum}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, tune)
			// The documentation pages of the refusals exist.
			w := httptest.NewRecorder()
			f.guard.Policy().Problems.Write(w, httptest.NewRequest("POST", "/", nil), problem.KeyMissing)
			link, _, _ := strings.Cut(strings.TrimPrefix(w.Header().Get("Link"), "<"), ">")
			resp, page := f.get(link)
			if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" {
				t.Fatalf("%d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
			}
			p := f.guard.Policy()
			for name, want := range map[string]string{
				"window-hours": strings.TrimSuffix(fmt.Sprintf("%g", p.Window.Hours()), ".0"), "lease-seconds": fmt.Sprintf("%g", p.Lease.Seconds()),
				"min-length": fmt.Sprint(p.Format.MinLength), "max-length": fmt.Sprint(p.Format.MaxLength), "fingerprint": p.Fingerprint.Doc,
			} {
				if got := value(t, page, name); got != want {
					t.Errorf("%s: the page says %q, the config %q", name, got, want)
				}
			}
			for _, part := range []string{"from the moment the first", "authenticated principal", "Printable ASCII", "structured-field String"} {
				if !strings.Contains(strings.Join(strings.Fields(page), " "), part) {
					t.Errorf("the page does not say %q", part)
				}
			}
			for _, k := range problem.Kinds() {
				if k.Page == problem.PageIdempotency && !strings.Contains(page, `id="`+k.Code+`"`) {
					t.Errorf("%s is not explained", k.Code)
				}
			}
			// The published format is the one that is enforced.
			for n, ok := range map[int]bool{p.Format.MinLength - 1: false, p.Format.MinLength: true, p.Format.MaxLength: true, p.Format.MaxLength + 1: false} {
				_, err := f.guard.Key(http.Header{"Idempotency-Key": {`"` + strings.Repeat("k", n) + `"`}})
				if (err == nil) != ok {
					t.Errorf("%d characters: %v", n, err)
				}
			}
		})
	}
}

func TestTimeScaleIsTold(t *testing.T) {
	f := newFixture(t, func(c *idempotency.Config) { c.TimeScale = 1000 })
	if _, page := f.get("/docs/idempotency"); value(t, page, "time-scale") != "1000" {
		t.Error("the time scale is not told")
	}
	if _, page := newFixture(t, nil).get("/docs/idempotency"); strings.Contains(page, "time-scale") {
		t.Error("a time scale is told although there is none")
	}
}

func TestPagesAreSafe(t *testing.T) {
	f := newFixture(t, nil)
	for _, path := range []string{"/docs/idempotency", "/docs/problems"} {
		resp, page := f.get(path)
		_, style, _ := strings.Cut(page, "<style>")
		style, _, _ = strings.Cut(style, "</style>")
		sum := sha256.Sum256([]byte(style))
		policy := resp.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
			t.Errorf("%s: policy %q does not allow the page's own style alone", path, policy)
		}
		for _, bad := range []string{"<script", "onclick", "http://", "<img", "style=\""} {
			if strings.Contains(page, bad) {
				t.Errorf("%s holds %s", path, bad)
			}
		}
		for _, want := range []string{`<html lang="en">`, "<title>", "<main>", "<h1>", `scope="col"`, "viewport"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %s", path, want)
			}
		}
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s may be sniffed", path)
		}
	}
	_, page := f.get("/docs/problems")
	for _, k := range problem.Kinds() {
		if !strings.Contains(page, `id="`+k.Code+`"`) {
			t.Errorf("%s is not explained", k.Code)
		}
	}
	if resp, _ := f.get("/docs/nothing"); resp.StatusCode != 404 || resp.Header.Get("Content-Type") != problem.ContentType {
		t.Errorf("no such page: %d", resp.StatusCode)
	}
	resp, err := http.Post(f.server.URL+"/docs/problems", "text/plain", nil)
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST to a page: %d %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
}

type keySet struct {
	Keys []struct {
		Kty, Crv, Kid, Keyid, X, Use, Alg string
		Nbf, Exp                          int64
	}
}

// secret stores an endpoint with one Ed25519 key.
func (f *fixture) secret(id godwit.SecretID, expires time.Time) *godwit.Secret {
	f.t.Helper()
	ctx := context.Background()
	tenant := &godwit.Tenant{ID: godwit.NewTenantID(now), Name: "t", CreatedAt: now}
	must(f.t, f.store.CreateTenant(ctx, tenant))
	e := &godwit.Endpoint{ID: godwit.NewEndpointID(now), TenantID: tenant.ID, URL: "https://a.example/", Method: "POST", Profile: "eds",
		Patterns: []string{"*"}, Status: godwit.EndpointActive, StatusAt: now, CreatedAt: now, UpdatedAt: now, Version: 1}
	seed := append(make([]byte, 16), id[:]...)
	s := &godwit.Secret{ID: id, EndpointID: e.ID, TenantID: tenant.ID, Algorithm: godwit.AlgorithmEd25519, Sealed: f.ring.Seal(seed, keyring.ForSecret(id)),
		PublicKey: ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey), CreatedAt: now, NotBefore: now, ExpiresAt: expires}
	must(f.t, f.store.CreateEndpoint(ctx, e, s))
	return s
}

// signed checks that each key has signed the response for the host of the request, as the directory draft requires.
func (f *fixture) signed(resp *http.Response, body string, keys ...*godwit.Secret) {
	f.t.Helper()
	inputs := strings.Split(resp.Header.Get("Signature-Input"), ", ")
	signatures := strings.Split(resp.Header.Get("Signature"), ", ")
	if len(inputs) != len(keys) || len(signatures) != len(keys) {
		f.t.Fatalf("%d keys, signatures %q", len(keys), resp.Header["Signature-Input"])
	}
	sum := sha256.Sum256([]byte(body))
	digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	if got := resp.Header.Get("Content-Digest"); got != digest {
		f.t.Errorf("Content-Digest %s, want %s", got, digest)
	}
	for i, key := range keys {
		label := fmt.Sprintf("sig%d=", i+1)
		params := strings.TrimPrefix(inputs[i], label)
		want := fmt.Sprintf(`("@authority";req "content-digest");created=%d;expires=%d;alg="ed25519";keyid="%s";tag="http-message-signatures-directory"`,
			now.Unix(), now.Unix()+600, wellknown.Thumbprint(key.PublicKey))
		if params != want {
			f.t.Errorf("Signature-Input %s\nwant %s", params, want)
		}
		signature, err := base64.StdEncoding.DecodeString(strings.Trim(strings.TrimPrefix(signatures[i], label), ":"))
		must(f.t, err)
		base := `"@authority";req: ` + strings.TrimPrefix(f.server.URL, "http://") + "\n" + `"content-digest": ` + digest + "\n" + `"@signature-params": ` + params
		if !ed25519.Verify(key.PublicKey, []byte(base), signature) {
			f.t.Errorf("signature %d does not verify", i+1)
		}
	}
}

// The example of RFC 8037, appendix A.3.
func TestThumbprint(t *testing.T) {
	public, err := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	must(t, err)
	if got := wellknown.Thumbprint(public); got != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("thumbprint %s", got)
	}
}

func TestKeyDirectory(t *testing.T) {
	f := newFixture(t, nil)
	forever := f.secret(godwit.NewSecretID(now), time.Time{})
	ending := f.secret(godwit.NewSecretID(now.Add(time.Millisecond)), now.Add(time.Hour))
	expired := f.secret(godwit.NewSecretID(now.Add(2*time.Millisecond)), now.Add(-time.Second))
	resp, body := f.get(wellknown.DirectoryPath)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/http-message-signatures-directory+json" || resp.Header.Get("Cache-Control") == "" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	var set keySet
	must(t, json.Unmarshal([]byte(body), &set))
	if len(set.Keys) != 2 {
		t.Fatalf("keys: %s", body)
	}
	k := set.Keys[0]
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	must(t, err)
	if k.Kty != "OKP" || k.Crv != "Ed25519" || k.Kid != wellknown.Thumbprint(forever.PublicKey) || k.Keyid != forever.ID.String() || k.Alg != "ed25519" || string(x) != string(forever.PublicKey) || k.Nbf != now.Unix() || k.Exp != 0 {
		t.Errorf("key is %+v", k)
	}
	if set.Keys[1].Keyid != ending.ID.String() || set.Keys[1].Exp != now.Add(time.Hour).Unix() {
		t.Errorf("second key is %+v", set.Keys[1])
	}
	for _, s := range []*godwit.Secret{forever, ending} {
		if strings.Contains(body, base64.RawURLEncoding.EncodeToString(s.Sealed)) || strings.Contains(body, `"d"`) {
			t.Error("more than public keys is shown")
		}
	}
	f.signed(resp, body, forever, ending)
	for _, query := range []string{"?keyid=", "?kid="} {
		for _, suffix := range []string{"", "/stripe"} {
			resp, body = f.get(wellknown.DirectoryPath + query + ending.ID.String() + suffix)
			set = keySet{}
			must(t, json.Unmarshal([]byte(body), &set))
			if len(set.Keys) != 1 || set.Keys[0].Keyid != ending.ID.String() {
				t.Errorf("by %s: %s", query, body)
			}
			f.signed(resp, body, ending)
		}
	}
	for path, want := range map[string]int{
		"?kid=" + expired.ID.String(): 404, "?kid=" + godwit.NewSecretID(now).String(): 404, "?kid=x": 404, "?after=x": 400, "?a=%zz": 400,
	} {
		if resp, _ := f.get(wellknown.DirectoryPath + path); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}

// The directory is signed for the server's own host only: another host could pass on its requests and show the keys as its own.
func TestKeyDirectoryIsSignedForItsOwnHost(t *testing.T) {
	f := newFixture(t, nil)
	f.secret(godwit.NewSecretID(now), time.Time{})
	host := f.server.Listener.Addr().String()
	for named, signed := range map[string]bool{host: true, "evil.example": false, "evil.example:443": false, strings.ToUpper(host): true} {
		req, err := http.NewRequest(http.MethodGet, f.server.URL+wellknown.DirectoryPath, nil)
		must(t, err)
		req.Host = named
		resp, err := f.server.Client().Do(req)
		must(t, err)
		resp.Body.Close()
		if got := resp.Header.Get("Signature") != ""; resp.StatusCode != 200 || got != signed {
			t.Errorf("Host %s: %d, signed: %t", named, resp.StatusCode, got)
		}
	}
}

// Signatures are kept for a minute, as long as the keys stay the same.
func TestKeyDirectorySignaturesAreKept(t *testing.T) {
	f := newFixture(t, nil)
	first := f.secret(godwit.NewSecretID(now), time.Time{})
	var header string
	for range 3 {
		resp, body := f.get(wellknown.DirectoryPath)
		f.signed(resp, body, first)
		header = resp.Header.Get("Signature")
	}
	if n := f.opened.Load(); n != 1 {
		t.Errorf("private keys were read %d times", n)
	}
	second := f.secret(godwit.NewSecretID(now.Add(time.Millisecond)), time.Time{})
	resp, body := f.get(wellknown.DirectoryPath)
	f.signed(resp, body, first, second)
	if n := f.opened.Load(); n != 3 {
		t.Errorf("with a new key, private keys were read %d times", n)
	}
	f.now = now.Add(61 * time.Second)
	resp, _ = f.get(wellknown.DirectoryPath)
	if n := f.opened.Load(); n != 5 || resp.Header.Get("Signature") == header || !strings.Contains(resp.Header.Get("Signature-Input"), fmt.Sprintf("created=%d", f.now.Unix())) {
		t.Errorf("a minute later private keys were read %d times: %s", n, resp.Header.Get("Signature-Input"))
	}
}

// A response without signatures, made while the store was away, is not kept.
func TestKeyDirectoryIsSignedOnceTheStoreIsBack(t *testing.T) {
	f := newFixture(t, nil)
	key := f.secret(godwit.NewSecretID(now), time.Time{})
	f.away.Store(true)
	if resp, _ := f.get(wellknown.DirectoryPath); resp.StatusCode != http.StatusOK || resp.Header.Get("Signature") != "" {
		t.Errorf("while the store is away: %d, signature %q", resp.StatusCode, resp.Header.Get("Signature"))
	}
	f.away.Store(false)
	resp, body := f.get(wellknown.DirectoryPath)
	f.signed(resp, body, key)
}

func TestKeyDirectoryPages(t *testing.T) {
	f := newFixture(t, nil)
	first := f.secret(godwit.NewSecretID(now), time.Time{})
	for i := range 1004 {
		s := *first
		s.ID = godwit.NewSecretID(now.Add(time.Duration(i+1) * time.Millisecond))
		if i != 3 { // the fifth key cannot be decrypted
			s.Sealed = f.ring.Seal(append(make([]byte, 16), first.ID[:]...), keyring.ForSecret(s.ID))
		}
		must(t, storetest.IssueSecret(context.Background(), f.store, &s, store.Expiry{}))
	}
	seen := map[string]bool{}
	sizes, signed := []int{}, []int{}
	for path := wellknown.DirectoryPath; path != ""; {
		resp, body := f.get(path)
		var set keySet
		must(t, json.Unmarshal([]byte(body), &set))
		for _, k := range set.Keys {
			seen[k.Keyid] = true
		}
		sizes = append(sizes, len(set.Keys))
		signed = append(signed, strings.Count(resp.Header.Get("Signature-Input"), "tag="))
		path = ""
		if link := resp.Header.Get("Link"); link != "" {
			if !strings.HasSuffix(link, `>; rel="next"`) {
				t.Fatalf("Link is %q", link)
			}
			path = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
		}
	}
	if len(seen) != 1005 || fmt.Sprint(sizes) != "[1000 5]" || fmt.Sprint(signed) != "[15 5]" {
		t.Errorf("%d keys on pages of %v, signed by %v", len(seen), sizes, signed)
	}
}
