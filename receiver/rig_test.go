package receiver_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/receiver"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// A clock is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A rig is a receiver behind TLS, with a clock of its own and a log that can be read.
type rig struct {
	*receiver.Receiver
	t      testing.TB
	clock  *clock
	store  receiver.Store
	server *httptest.Server
	client *http.Client
	log    *syncBuffer
	calls  atomic.Int32
	handle receiver.Handler // what the handler does beside being counted; nil: accept
}

// newRig makes a receiver of deliveries by eds, unless change says otherwise.
func newRig(t testing.TB, change ...func(*receiver.Options)) *rig {
	t.Helper()
	g := &rig{t: t, clock: &clock{now: start}, log: &syncBuffer{}}
	o := receiver.Options{
		Scheme: edsScheme, Clock: g.clock.Now, Log: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Store: receiver.NewMemory(receiver.MemoryOptions{}),
		Handler: func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) {
			g.calls.Add(1)
			if g.handle == nil {
				return nil, nil
			}
			return g.handle(ctx, d)
		},
	}
	for _, c := range change {
		c(&o)
	}
	g.store = o.Store
	var err error
	if g.Receiver, err = receiver.New(o); err != nil {
		t.Fatal(err)
	}
	g.serve(g.Receiver)
	return g
}

func (g *rig) serve(h http.Handler) {
	g.server = httptest.NewUnstartedServer(h)
	g.server.TLS = clientCertificates()
	g.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	g.server.StartTLS()
	g.client = g.server.Client()
	g.t.Cleanup(func() {
		g.server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.Wait(ctx); err != nil {
			g.t.Error(err)
		}
	})
}

// An answer is a response, read whole.
type answer struct {
	Status int
	Header http.Header
	Body   string
}

func (g *rig) do(req *http.Request) answer {
	g.t.Helper()
	a, err := g.try(req)
	if err != nil {
		g.t.Fatal(err)
	}
	return a
}

func (g *rig) try(req *http.Request) (answer, error) {
	resp, err := g.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}, err
}

func (g *rig) wantCalls(n int) {
	g.t.Helper()
	if got := int(g.calls.Load()); got != n {
		g.t.Errorf("the handler ran %d times, want %d", got, n)
	}
}

func (g *rig) want(a answer, status int) answer {
	g.t.Helper()
	if a.Status != status {
		g.t.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return a
}

// wantProblem checks problem details and the link to the documentation.
func (g *rig) wantProblem(a answer, status int, code receiver.ProblemCode) {
	g.t.Helper()
	g.want(a, status)
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(a.Body), &p); err != nil || a.Header.Get("Content-Type") != "application/problem+json" {
		g.t.Fatalf("no problem details: %s %q", a.Header.Get("Content-Type"), a.Body)
	}
	if p.Type != "/docs/idempotency#"+string(code) || p.Title == "" || p.Status != status || p.Detail == "" {
		g.t.Errorf("problem %+v, want code %s", p, code)
	}
	if link := a.Header.Get("Link"); link != `</docs/idempotency>; rel="describedby"; type="text/html"` {
		g.t.Errorf("link %q", link)
	}
}

// memoryLen is how much a store in memory remembers.
func (g *rig) memoryLen() int { return g.store.(*receiver.Memory).Len() }

type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Secrets of the tests. They protect nothing.
const (
	secretA = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	secretB = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

func edsSecret(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// edsScheme knows two keys of one producer and one of another.
var edsScheme = receiver.EDS{Keys: []receiver.EDSKey{
	{ID: "shop-1", Principal: "shop", Secret: edsSecret("shop-1")},
	{ID: "shop-2", Principal: "shop", Secret: edsSecret("shop-2")},
	{ID: "bank-1", Principal: "bank", Secret: edsSecret("bank-1")},
}}

// An event is what is delivered.
type event struct {
	id   string // the deduplication key
	body string // defaults to one that holds the id
	path string // defaults to /hooks
	key  string // of eds; defaults to shop-1
	typ  string // defaults to application/json
}

func (e event) withDefaults() event {
	if e.body == "" {
		e.body = fmt.Sprintf(`{"id":%q,"type":"order.paid","n":1}`, e.id)
	}
	if e.path == "" {
		e.path = "/hooks"
	}
	if e.key == "" {
		e.key = "shop-1"
	}
	if e.typ == "" {
		e.typ = "application/json"
	}
	return e
}

// request makes an unsigned request.
func (g *rig) request(e event) *http.Request {
	g.t.Helper()
	req, err := http.NewRequest(http.MethodPost, g.server.URL+e.path, strings.NewReader(e.body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", e.typ)
	return req
}

// eds makes a request by eds, signed now.
func (g *rig) eds(e event) *http.Request {
	g.t.Helper()
	e = e.withDefaults()
	req := g.request(e)
	req.Header.Set("Idempotency-Key", `"`+e.id+`"`)
	g.signEDS(req, e)
	return req
}

// signEDS signs what the request holds now.
func (g *rig) signEDS(req *http.Request, e event) {
	g.t.Helper()
	e = e.withDefaults()
	if err := signEDS(req, e.body, e.key, g.clock.Now()); err != nil {
		g.t.Fatal(err)
	}
}

func signEDS(req *http.Request, body, keyID string, now time.Time) error {
	secret, err := base64.StdEncoding.DecodeString(edsSecret(keyID))
	if err != nil {
		return err
	}
	key, err := httpsig.NewHMACKey(keyID, secret)
	if err != nil {
		return err
	}
	signer, err := httpsig.NewSigner(httpsig.DeliveryComponents()...)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Digest", httpsig.ContentDigest([]byte(body)))
	return signer.SignRequest(req, httpsig.Params{Keys: []httpsig.Key{key}, Created: now, Nonce: rand.Text()})
}

func hexMAC(algorithm func() hash.Hash, secret, message string) string {
	return hex.EncodeToString(mac(algorithm, []byte(secret), message))
}

func mac(algorithm func() hash.Hash, secret []byte, message string) []byte {
	m := hmac.New(algorithm, secret)
	m.Write([]byte(message))
	return m.Sum(nil)
}

// A mechanism is a scheme and how its sender signs. Good is with a key that the scheme knows.
type mechanism struct {
	name   string
	scheme receiver.Scheme
	fresh  bool // whether it signs a time
	sign   func(req *http.Request, e event, now time.Time, good bool)
}

func secretFor(good bool) string {
	if good {
		return secretA
	}
	return "whsec_d3Jvbmd3cm9uZ3dyb25nd3Jvbmd3cm9uZ3dyb25nMTI="
}

func unix(now time.Time) string { return strconv.FormatInt(now.Unix(), 10) }

var paypalKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func paypalPEM() string {
	der, err := x509.MarshalPKIXPublicKey(&paypalKey().PublicKey)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// mechanisms are all that ship.
func mechanisms() []mechanism {
	secrets := []string{secretB, secretA} // during a rotation
	return []mechanism{
		{"eds", edsScheme, true, func(req *http.Request, e event, now time.Time, good bool) {
			req.Header.Set("Idempotency-Key", `"`+e.id+`"`)
			key := e.key
			if !good {
				key = "stranger"
			}
			if err := signEDS(req, e.body, key, now); err != nil {
				panic(err)
			}
		}},
		{"ojs", receiver.OJS{Secrets: secrets}, true, func(req *http.Request, e event, now time.Time, good bool) {
			req.Header.Set("X-OJS-Delivery-ID", e.id)
			req.Header.Set("X-OJS-Timestamp", unix(now))
			req.Header.Set("X-OJS-Signature", "sha256="+hexMAC(sha256.New, secretFor(good), unix(now)+"."+e.body))
		}},
		{"cybercube", receiver.Cybercube{Secrets: secrets}, true, func(req *http.Request, e event, now time.Time, good bool) {
			req.Header.Set("X-Webhook-ID", "wh_"+rand.Text())
			req.Header.Set("X-Webhook-Timestamp", unix(now))
			req.Header.Set("X-Webhook-Signature", "sha256="+hexMAC(sha256.New, secretFor(good), unix(now)+"."+e.body))
		}},
		{"standard-webhooks", receiver.StandardWebhooks{Keys: secrets}, true, func(req *http.Request, e event, now time.Time, good bool) {
			secret, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secretFor(good), "whsec_"))
			req.Header.Set("Webhook-Id", e.id)
			req.Header.Set("Webhook-Timestamp", unix(now))
			sum := mac(sha256.New, secret, e.id+"."+unix(now)+"."+e.body)
			req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum))
		}},
		{"github", receiver.GitHub{Secrets: secrets}, false, func(req *http.Request, e event, _ time.Time, good bool) {
			req.Header.Set("X-GitHub-Delivery", e.id)
			req.Header.Set("X-Hub-Signature-256", "sha256="+hexMAC(sha256.New, secretFor(good), e.body))
		}},
		{"stripe", receiver.Stripe{Secrets: secrets}, true, func(req *http.Request, e event, now time.Time, good bool) {
			req.Header.Set("Stripe-Signature", "t="+unix(now)+",v1="+hexMAC(sha256.New, secretFor(good), unix(now)+"."+e.body))
		}},
		{"shopify", receiver.Shopify{Secrets: secrets}, false, func(req *http.Request, e event, _ time.Time, good bool) {
			req.Header.Set("X-Shopify-Event-Id", e.id)
			req.Header.Set("X-Shopify-Hmac-Sha256", base64.StdEncoding.EncodeToString(mac(sha256.New, []byte(secretFor(good)), e.body)))
		}},
		{"slack", receiver.Slack{Secrets: secrets}, true, func(req *http.Request, e event, now time.Time, good bool) {
			req.Header.Set("X-Slack-Request-Timestamp", unix(now))
			req.Header.Set("X-Slack-Signature", "v0="+hexMAC(sha256.New, secretFor(good), "v0:"+unix(now)+":"+e.body))
		}},
		{"twilio", receiver.Twilio{Secrets: secrets}, false, func(req *http.Request, e event, _ time.Time, good bool) {
			sum := sha256.Sum256([]byte(e.body))
			query := req.URL.Query()
			query.Set("bodySHA256", hex.EncodeToString(sum[:]))
			req.URL.RawQuery = query.Encode()
			req.Header.Set("I-Twilio-Idempotency-Token", e.id)
			req.Header.Set("X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac(sha1.New, []byte(secretFor(good)), req.URL.String())))
		}},
		{"paypal", receiver.PayPal{WebhookID: "WH-1", Certificates: []string{paypalPEM()}}, true, func(req *http.Request, e event, now time.Time, good bool) {
			at, webhook := now.UTC().Format(time.RFC3339), "WH-1"
			if !good {
				webhook = "WH-2"
			}
			sum := sha256.Sum256(fmt.Appendf(nil, "%s|%s|%s|%d", e.id, at, webhook, crc32.ChecksumIEEE([]byte(e.body))))
			signature, err := rsa.SignPKCS1v15(nil, paypalKey(), crypto.SHA256, sum[:])
			if err != nil {
				panic(err)
			}
			req.Header.Set("PAYPAL-TRANSMISSION-ID", e.id)
			req.Header.Set("PAYPAL-TRANSMISSION-TIME", at)
			req.Header.Set("PAYPAL-TRANSMISSION-SIG", base64.StdEncoding.EncodeToString(signature))
			req.Header.Set("PAYPAL-CERT-URL", "https://api.paypal.com/v1/notifications/certs/CERT-1")
			req.Header.Set("PAYPAL-AUTH-ALGO", "SHA256withRSA")
		}},
		{"bearer", receiver.Bearer{Tokens: []receiver.Token{{Value: secretA, Principal: "shop"}, {Value: secretB, Principal: "shop"}}}, false,
			func(req *http.Request, e event, _ time.Time, good bool) {
				req.Header.Set("Idempotency-Key", `"`+e.id+`"`)
				req.Header.Set("Authorization", "Bearer "+secretFor(good))
			}},
		{"basic", receiver.Basic{Users: []receiver.User{{Name: "shop", Password: secretA}}}, false,
			func(req *http.Request, e event, _ time.Time, good bool) {
				req.Header.Set("Idempotency-Key", `"`+e.id+`"`)
				req.SetBasicAuth("shop", secretFor(good))
			}},
	}
}

// make makes a signed request by a mechanism.
func (g *rig) make(m mechanism, e event, good bool) *http.Request {
	g.t.Helper()
	e = e.withDefaults()
	req := g.request(e)
	m.sign(req, e, g.clock.Now(), good)
	return req
}

func withScheme(s receiver.Scheme) func(*receiver.Options) {
	return func(o *receiver.Options) { o.Scheme = s }
}

// again makes the same request once more, byte for byte.
func again(req *http.Request) *http.Request {
	next := req.Clone(context.Background())
	if req.GetBody != nil {
		next.Body, _ = req.GetBody()
	}
	return next
}

// id makes a key of the length that is asked for.
func id(name string) string { return "key-of-sixteen-or-more-" + name }
