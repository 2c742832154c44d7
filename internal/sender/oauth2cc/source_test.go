package oauth2cc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/sender"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	clientID = "client:1 ü"
	secret   = "s3cr3t/&= :ö"
)

func newSender(t *testing.T) *sender.Sender {
	s, err := sender.New(sender.Config{
		Clock: time.Now, AllowHTTP: true, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A server is a token endpoint on a real socket.
func server(t *testing.T, handle http.HandlerFunc) string {
	srv := httptest.NewServer(handle)
	t.Cleanup(srv.Close)
	return srv.URL + "/token"
}

func newSource(t *testing.T, s Sender, cfg Config) *Source {
	t.Helper()
	cfg.ClientID, cfg.ClientSecret = clientID, secret
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	src, err := New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestTokenRequest(t *testing.T) {
	for _, inBody := range []bool{false, true} {
		t.Run(fmt.Sprintf("secret in body %v", inBody), func(t *testing.T) {
			url := server(t, func(w http.ResponseWriter, r *http.Request) {
				id, pw, basic := r.BasicAuth()
				form := parseForm(r)
				if basic == inBody || r.Method != "POST" || form.Get("grant_type") != "client_credentials" ||
					form.Get("scope") != "events:write other" || form.Get("audience") != "https://api.test" {
					w.WriteHeader(400)
					return
				}
				if inBody {
					id, pw = form.Get("client_id"), form.Get("client_secret")
				} else {
					id, pw = unescape(id), unescape(pw)
				}
				if id != clientID || pw != secret {
					w.WriteHeader(401)
					return
				}
				io.WriteString(w, `{"access_token":"tok-1","token_type":"bearer","expires_in":3600}`)
			})
			src := newSource(t, newSender(t), Config{
				TokenURL: url, Scopes: []string{"events:write", "other"}, Audience: "https://api.test", SecretInBody: inBody,
			})
			if token, err := src.Token(context.Background()); token != "tok-1" || err != nil {
				t.Errorf("token %q, %v", token, err)
			}
		})
	}
}

func parseForm(r *http.Request) url.Values {
	b, _ := io.ReadAll(r.Body)
	v, _ := url.ParseQuery(string(b))
	return v
}

func unescape(s string) string {
	v, _ := url.QueryUnescape(s)
	return v
}

// numbered hands out tok-1, tok-2, ... with what follows as further members.
func numbered(n *atomic.Int32, members string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"access_token":"tok-%d"%s}`, n.Add(1), members)
	}
}

func TestTokenIsKeptUntilShortlyBeforeItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		members string
		last    time.Duration // still the first token
		next    time.Duration // a new one
	}{
		"hour":            {`,"expires_in":3600`, 3569 * time.Second, 3570 * time.Second},
		"as string":       {`,"expires_in":"3600"`, 3569 * time.Second, 3570 * time.Second},
		"short":           {`,"expires_in":20`, 9 * time.Second, 10 * time.Second},
		"not told":        {``, 269 * time.Second, 270 * time.Second},
		"nonsense told":   {`,"expires_in":-5`, 269 * time.Second, 270 * time.Second},
		"beyond all time": {`,"expires_in":1e300`, 364 * 24 * time.Hour, 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int32
			now := clock.NewManual(time.Unix(1_700_000_000, 0))
			src := newSource(t, newSender(t), Config{TokenURL: server(t, numbered(&n, c.members)), Clock: now.Now})
			want := func(token string) {
				t.Helper()
				if got, err := src.Token(context.Background()); got != token || err != nil {
					t.Fatalf("token %q, %v; want %q", got, err, token)
				}
			}
			want("tok-1")
			now.Advance(c.last)
			want("tok-1")
			now.Advance(c.next - c.last)
			want("tok-2")
		})
	}
}

func TestInvalidate(t *testing.T) {
	var n atomic.Int32
	src := newSource(t, newSender(t), Config{TokenURL: server(t, numbered(&n, ""))})
	first, _ := src.Token(context.Background())
	src.Invalidate(first)
	second, _ := src.Token(context.Background())
	src.Invalidate(first) // a late 401 for the old token must not cost the new one
	third, _ := src.Token(context.Background())
	if first != "tok-1" || second != "tok-2" || third != "tok-2" || n.Load() != 2 {
		t.Errorf("%s %s %s after %d requests", first, second, third, n.Load())
	}
}

func TestErrorsAreTypedAndHoldNoSecret(t *testing.T) {
	echo := fmt.Sprintf(`"error_description":%q`, clientID+secret)
	for name, c := range map[string]struct {
		status int
		body   string
		want   TokenError
	}{
		"refused":         {401, `{"error":"invalid_client",` + echo + `}`, TokenError{Status: 401, Code: "invalid_client"}},
		"own code":        {400, `{"error":"` + "s3cr3t" + `"}`, TokenError{Status: 400}},
		"not JSON":        {500, "s3cr3t", TokenError{Status: 500}},
		"redirect":        {307, "s3cr3t", TokenError{Status: 307}},
		"200 not JSON":    {200, "s3cr3t", TokenError{Status: 200, Problem: "reply is not JSON of the expected form"}},
		"no token":        {200, `{"token_type":"bearer"}`, TokenError{Status: 200, Problem: "reply holds no usable access token"}},
		"token with CRLF": {200, `{"access_token":"a\r\nEvil: 1"}`, TokenError{Status: 200, Problem: "reply holds no usable access token"}},
		"other type":      {200, `{"access_token":"a","token_type":"mac"}`, TokenError{Status: 200, Problem: "token is not of type Bearer"}},
		"too long":        {200, `{"access_token":"` + strings.Repeat("a", 100<<10) + `"}`, TokenError{Status: 200, Problem: "reply is not JSON of the expected form"}},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int32
			src := newSource(t, newSender(t), Config{TokenURL: server(t, func(w http.ResponseWriter, r *http.Request) {
				n.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})})
			token, err := src.Token(context.Background())
			var got *TokenError
			if token != "" || !errors.As(err, &got) || *got != c.want {
				t.Errorf("token %q, error %+v; want %+v", token, err, c.want)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("error holds the secret: %v", err)
			}
			if n.Load() != 1 {
				t.Errorf("%d requests", n.Load())
			}
		})
	}
}

func TestTokenEndpointMeetsTheGuard(t *testing.T) {
	strict, err := sender.New(sender.Config{Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	for _, bad := range []string{"http://auth.test/token", "https://127.0.0.1/token", "https://169.254.169.254/token", ""} {
		var got *sender.URLError
		if _, err := New(strict, Config{TokenURL: bad, ClientID: "a", ClientSecret: "b", Clock: time.Now}); !errors.As(err, &got) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := New(strict, Config{TokenURL: "https://auth.test/", Clock: time.Now}); err == nil {
		t.Error("no client id and secret, but no error")
	}
	if _, err := New(strict, Config{TokenURL: "https://auth.test/", ClientID: "a", ClientSecret: "b"}); err == nil {
		t.Error("no clock, but no error")
	}
}

// A gate stands for the network: it answers when told, so that callers can be made to wait.
type gate struct {
	asked  atomic.Int32
	answer chan godwit.Exchange
}

func (g *gate) CheckURL(string) error { return nil }

func (g *gate) Send(ctx context.Context, _ *sender.Request) godwit.Exchange {
	g.asked.Add(1)
	select {
	case x := <-g.answer:
		return x
	case <-ctx.Done():
		return godwit.Exchange{Failure: &godwit.Failure{Kind: godwit.FailureInterrupted}}
	}
}

type result struct {
	token string
	err   error
}

func callers(src *Source, n int) chan result {
	results := make(chan result, n)
	for range n {
		go func() {
			token, err := src.Token(context.Background())
			results <- result{token, err}
		}()
	}
	synctest.Wait()
	return results
}

func TestOneAsksForAll(t *testing.T) {
	granted := godwit.Exchange{Status: 200, Body: []byte(`{"access_token":"tok","expires_in":60}`)}
	refused := godwit.Exchange{Status: 500}
	for name, answer := range map[string]godwit.Exchange{"granted": granted, "refused": refused} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{answer: make(chan godwit.Exchange)}
				src := newSource(t, g, Config{})
				const n = 20
				results := callers(src, n)
				g.answer <- answer
				for range n {
					r := <-results
					if (r.err == nil) != (name == "granted") {
						t.Errorf("token %q, %v", r.token, r.err)
					}
				}
				if g.asked.Load() != 1 {
					t.Errorf("asked %d times", g.asked.Load())
				}
				// A refusal is not kept for those who come later.
				later := callers(src, 1)
				if name == "refused" {
					g.answer <- granted
				}
				if r := <-later; r.token != "tok" {
					t.Errorf("later: %q, %v", r.token, r.err)
				}
			})
		})
	}
}

// A caller that requests a token may be interrupted; the next waiting caller then makes its own request.
func TestInterruptedAskerDoesNotSpoilIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{answer: make(chan godwit.Exchange)}
		src := newSource(t, g, Config{})
		ctx, cancel := context.WithCancelCause(t.Context())
		first := make(chan error)
		go func() { _, err := src.Token(ctx); first <- err }()
		synctest.Wait()

		waiting, stop := context.WithCancelCause(t.Context())
		second := make(chan error)
		go func() { _, err := src.Token(waiting); second <- err }()
		synctest.Wait()
		stop(sender.ErrInterrupted)
		if err := <-second; !errors.Is(err, sender.ErrInterrupted) {
			t.Errorf("who waited: %v", err)
		}

		results := callers(src, 3)
		cancel(sender.ErrInterrupted)
		if err := <-first; err == nil {
			t.Error("interrupted, but no error")
		}
		g.answer <- godwit.Exchange{Status: 200, Body: []byte(`{"access_token":"tok"}`)}
		for range 3 {
			if r := <-results; r.token != "tok" {
				t.Errorf("%q, %v", r.token, r.err)
			}
		}
		if g.asked.Load() != 2 {
			t.Errorf("asked %d times", g.asked.Load())
		}
	})
}

func FuzzReadToken(f *testing.F) {
	for _, seed := range []string{
		`{"access_token":"a","token_type":"Bearer","expires_in":60}`, `{"expires_in":"1e999"}`, `{"error":"invalid_client"}`, `[]`, ``,
	} {
		f.Add(200, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		token, lifetime, err := readToken(godwit.Exchange{Status: status, Body: body})
		if (token == "") != (err != nil) {
			t.Fatalf("token %q, %v", token, err)
		}
		if err == nil && (lifetime <= 0 || sender.CheckHeader("Authorization", "Bearer "+token) != nil) {
			t.Fatalf("token %q for %v", token, lifetime)
		}
	})
}
