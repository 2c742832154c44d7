package relay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

func TestMain(m *testing.M) { os.Exit(apptest.RemoveBinary(m.Run())) }

// A served process is `godwit serve` over TLS, as an operator runs it: nothing of the test is in its memory.
type served struct {
	t      *testing.T
	dir    string
	flags  []string
	listen string
	URL    string
	Key    string
	cmd    *exec.Cmd
	ended  chan error
	http   *http.Client
}

func serve(t *testing.T) *served {
	t.Helper()
	dir := t.TempDir()
	certificate, key := apptest.ServerCertificate(t, "127.0.0.1")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p := &served{t: t, dir: dir, listen: "127.0.0.1:0", flags: []string{"--data", filepath.Join(dir, "data")}}
	p.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: apptest.CAPool(t)}}}
	var made struct {
		Key string `json:"api_key"`
	}
	out, err := exec.Command(apptest.Binary(t), append([]string{"keys", "create", "--tenant-name", "relay", "--scopes", "ingest,read,manage", "--json"}, p.flags...)...).Output()
	if err != nil || json.Unmarshal(out, &made) != nil {
		t.Fatalf("make a key: %v %s", err, out)
	}
	p.Key = made.Key
	p.flags = append(p.flags, "--tls-cert", write("cert.pem", certificate), "--tls-key", write("key.pem", key), "--ca-file", apptest.CAFile(t),
		"--allow-address", "127.0.0.0/8", "--log-format", "json")
	t.Cleanup(func() {
		if p.cmd == nil {
			return
		}
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := <-p.ended; err != nil {
			t.Errorf("%s ended: %v", p.URL, err)
		}
	})
	p.start()
	return p
}

// start runs it until it tells where it serves; a second start is at the same place.
func (p *served) start() {
	p.t.Helper()
	p.cmd = exec.Command(apptest.Binary(p.t), append([]string{"serve", "--listen", p.listen}, p.flags...)...)
	log, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	serving := make(chan string, 1)
	p.ended = make(chan error, 1)
	go func() {
		defer close(serving)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			var line struct{ Msg, URL, Listen string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				p.listen = line.Listen
				serving <- line.URL
			}
		}
		p.ended <- p.cmd.Wait()
	}()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case p.URL = <-serving:
	case <-limit.C:
	}
	if !strings.HasPrefix(p.URL, "https://") {
		p.t.Fatalf("serves at %q", p.URL)
	}
}

// kill ends it as a power failure would.
func (p *served) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	<-p.ended
	p.cmd = nil
}

// endpoint registers one, by the public client. It waits until the process delivers: before that the process asks for a retry.
func (p *served) endpoint(url, pattern string) *client.Endpoint {
	p.t.Helper()
	c, err := client.New(p.URL, p.Key, client.WithHTTPClient(p.http), client.WithRetry(client.Retry{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond}))
	if err != nil {
		p.t.Fatal(err)
	}
	ep, err := c.CreateEndpoint(p.t.Context(), client.NewEndpoint{URL: url, Patterns: []string{pattern}})
	if err != nil {
		p.t.Fatal(err)
	}
	return ep
}

// source registers an upstream.
func (p *served) source(fields apptest.Fields) (made source) {
	p.t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		p.t.Fatal(err)
	}
	a := p.post("/v1/sources", "", body, p.Key)
	if err := json.Unmarshal(a.Body, &made); err != nil || a.Status != http.StatusCreated {
		p.t.Fatalf("%d %s", a.Status, a.Body)
	}
	return made
}

// post makes a request over TLS with a bearer token.
func (p *served) post(path, key string, body []byte, token string) (a answer) {
	p.t.Helper()
	q, err := http.NewRequest(http.MethodPost, p.URL+path, bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+token)
	if key != "" {
		q.Header.Set("Idempotency-Key", quoted(key))
	}
	resp, err := p.http.Do(q)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	a.Status, a.Header = resp.StatusCode, resp.Header
	if a.Body, err = io.ReadAll(resp.Body); err != nil {
		p.t.Fatal(err)
	}
	_ = json.Unmarshal(a.Body, &a) // a problem, a receipt, or neither
	return a
}

// TestChainOfProcesses: a producer, two relays that are processes of their own, and a consumer, every hop over TLS. One key from end to
// end, each hop signed for itself, and one effect although the second relay dies on the way.
func TestChainOfProcesses(t *testing.T) {
	trace.Covers(t, "EDS-DEF-4", "EDS-INT-1", "EDS-INT-7", "EDS-INT-12", "EDS-SEC-TLS-1")
	a, b := serve(t), serve(t)
	var mu sync.Mutex
	var made http.Handler // once B's secret is known
	var effects []receiver.Delivery
	var arrived []http.Header
	certificate, key := apptest.ServerCertificate(t, "127.0.0.1")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	consumer := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		arrived = append(arrived, q.Header.Clone())
		h := made
		mu.Unlock()
		h.ServeHTTP(w, q)
	}))
	consumer.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	consumer.StartTLS()
	t.Cleanup(consumer.Close)
	atB := b.endpoint(consumer.URL+"/hook", "order.*")
	if made, err = receiver.New(receiver.Options{
		Scheme: receiver.EDS{Keys: []receiver.EDSKey{{ID: atB.Secret.ID, Principal: "b", Secret: atB.Secret.Value}}}, Log: slog.New(slog.DiscardHandler),
		Handler: func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			effects = append(effects, *d)
			return receiver.Accepted{}, nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	// B knows its upstream A by the key that A signs with toward it.
	fromA := b.source(apptest.Fields{"name": "from-a", "scheme": "eds"})
	atA := a.endpoint(b.URL+fromA.Path, "order.*")
	rotation, err := json.Marshal(apptest.Fields{"overlap_seconds": 0, "credential": apptest.Fields{"id": atA.Secret.ID, "secret": atA.Secret.Value}})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.post("/v1/sources/"+fromA.ID+"/rotate", "", rotation, b.Key); got.Status != http.StatusOK {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	producer := a.source(apptest.Fields{"name": "producer", "scheme": "bearer", "event_type": apptest.Fields{"fixed": "order.paid"}})
	deliver := func(key, body string) answer { return a.post(producer.Path, key, []byte(body), producer.Issued.Secret) }

	const odd, exact = `one key, "end to end" \ unchanged`, `{"n": 1,  "exact":"bytes"}`
	if got := deliver(odd, exact); got.Status != http.StatusOK || got.Key != odd {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	// The second relay dies. The producer learns that its event was not delivered, and retries.
	const second = "the second key of the test"
	b.kill()
	if got := deliver(second, `{"n":2}`); got.Status != http.StatusBadGateway || got.Code != "downstream-failed" {
		t.Errorf("behind a dead relay: %d %s", got.Status, got.Body)
	}
	b.start()
	b.endpoint("https://127.0.0.1:1/unused", "nothing") // it delivers again
	if got := deliver(second, `{"n":2}`); got.Status != http.StatusOK {
		t.Errorf("behind the relay that came back: %d %s", got.Status, got.Body)
	}
	if got := deliver(odd, exact); got.Status != http.StatusOK || got.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a repeat: %d %s", got.Status, got.Body)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(effects) != 2 || effects[0].Key != odd || string(effects[0].Body) != exact || effects[1].Key != second || effects[0].EventType != "order.paid" {
		t.Fatalf("effects: %+v", effects)
	}
	for _, h := range arrived {
		via := producer.ID + ", " + fromA.ID
		if signed := h.Get("Signature-Input"); !strings.Contains(signed, atB.Secret.ID+"/"+fromA.ID+".") || strings.Contains(signed, atA.Secret.ID) ||
			h.Get("Authorization") != "" || h.Get("Godwit-Via") != via {
			t.Errorf("the consumer saw %v", h)
		}
	}
	if p := effects[0].Principal; !strings.HasPrefix(p, "b/"+fromA.ID+".") || p != effects[1].Principal {
		t.Errorf("principals %q and %q", p, effects[1].Principal)
	}
	// No hop accepts a client without a credential, or with that of another hop.
	for name, token := range map[string]string{"nobody": "none", "another hop": atA.Secret.Value, "the API's": a.Key} {
		if got := a.post(producer.Path, "somebody else's key", []byte(`{}`), token); got.Status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, got.Status)
		}
	}
	plain := strings.Replace(a.URL, "https://", "http://", 1) + producer.Path
	if resp, err := http.Post(plain, "application/json", strings.NewReader(`{}`)); err == nil {
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("without TLS: %d", resp.StatusCode)
		}
	} else if errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
