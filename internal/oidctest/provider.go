// Package oidctest runs an identity provider for tests: the OpenID Provider of github.com/zitadel/oidc, which others wrote, with its login form, PKCE, signed
// tokens and end of session. Tests can rotate its keys, stop it, and replace its ID tokens by forged ones.
package oidctest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The client that the provider knows.
const (
	ClientID = "godwit"
	Secret   = "client-secret-of-the-test"
	Password = "correct horse"
)

// A Person has an account. The login name is that of the e-mail address before the @.
type Person struct {
	Subject string
	Email   string
	Groups  []string
}

// A Provider is an identity provider that runs.
type Provider struct {
	URL string

	mu      sync.Mutex
	people  []Person
	key     *signingKey
	hidden  bool // the key set does not show the key
	down    bool
	tamper  func(claims map[string]any)
	forge   func(idToken string) string
	inInfo  bool // groups are in the userinfo alone
	clients map[string]op.Client
}

// Start starts a provider with some people.
func Start(t testing.TB, people ...Person) *Provider {
	t.Helper()
	p := &Provider{people: people, key: newKey(t), clients: map[string]op.Client{}}
	server := httptest.NewUnstartedServer(nil)
	p.URL = "http://" + server.Listener.Addr().String()
	store := &store{Storage: storage.NewStorageWithClients(users{p}, nil), p: p}
	router := exampleop.SetupServer(p.URL, store, slog.New(slog.DiscardHandler), false)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, router) })
	server.Start()
	t.Cleanup(server.Close)
	return p
}

// Register makes a Godwit server known, by its URL.
func (p *Provider) Register(base string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.clients[ClientID].(client)
	if !ok {
		c = client{Client: storage.WebClient(ClientID, Secret)}
	}
	c.redirects = append(c.redirects[:len(c.redirects):len(c.redirects)], base+"/ui/oidc/callback")
	c.signedOut = append(c.signedOut[:len(c.signedOut):len(c.signedOut)], base+"/ui/")
	p.clients[ClientID] = c
}

// Rotate makes the provider sign with a new key. It shows the key at once, or not until Reveal.
func (p *Provider) Rotate(t testing.TB, hidden bool) {
	key := newKey(t)
	p.set(func() { p.key, p.hidden = key, hidden })
}

// Reveal shows the key.
func (p *Provider) Reveal() { p.set(func() { p.hidden = false }) }

// Down makes the provider fail, or work again.
func (p *Provider) Down(down bool) { p.set(func() { p.down = down }) }

// Tamper changes the claims of ID tokens before they are signed; nil ends that.
func (p *Provider) Tamper(change func(claims map[string]any)) { p.set(func() { p.tamper = change }) }

// Forge replaces signed ID tokens; nil ends that.
func (p *Provider) Forge(replace func(idToken string) string) { p.set(func() { p.forge = replace }) }

// Assign changes the groups of a person.
func (p *Provider) Assign(subject string, groups ...string) {
	p.set(func() {
		for i := range p.people {
			if p.people[i].Subject == subject {
				p.people[i].Groups = groups
			}
		}
	})
}

// OnlyUserinfo leaves the groups out of ID tokens.
func (p *Provider) OnlyUserinfo(on bool) { p.set(func() { p.inInfo = on }) }

func (p *Provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// serve passes requests on to the provider, and changes the ID tokens in its answers if a test says so.
func (p *Provider) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	p.mu.Lock()
	down, tampers := p.down, p.tamper != nil || p.forge != nil
	p.mu.Unlock()
	if down {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	if !tampers || r.URL.Path != "/oauth/token" {
		next.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r)
	body := p.changed(answer.Body.Bytes())
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body)
}

func (p *Provider) changed(body []byte) []byte {
	var members map[string]any
	if json.Unmarshal(body, &members) != nil {
		return body
	}
	token, _ := members["id_token"].(string)
	if token == "" {
		return body
	}
	p.mu.Lock()
	tamper, forge, key := p.tamper, p.forge, p.key
	p.mu.Unlock()
	if tamper != nil {
		claims := Claims(token)
		tamper(claims)
		token = Sign(key.private, key.id, claims)
	}
	if forge != nil {
		token = forge(token)
	}
	members["id_token"] = token
	changed, err := json.Marshal(members)
	if err != nil {
		return body
	}
	return changed
}

// Claims returns the claims of a token.
func Claims(token string) map[string]any {
	parts := strings.Split(token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		panic(err) // the provider made it
	}
	var claims map[string]any
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	if err := d.Decode(&claims); err != nil {
		panic(err)
	}
	return claims
}

// Sign makes a token.
func Sign(key *rsa.PrivateKey, id string, claims map[string]any) string {
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

// Login signs a person in at the provider, in the place of a browser: it opens the address that Godwit sent the browser to and returns the address of the
// callback that the provider answers with.
func (p *Provider) Login(t testing.TB, authorize, subject string) string {
	t.Helper()
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer c.CloseIdleConnections()
	form := follow(t, c, authorize)
	u, err := url.Parse(form)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	name := ""
	for _, person := range p.people {
		if person.Subject == subject {
			name = person.login()
		}
	}
	p.mu.Unlock()
	resp, err := c.PostForm(p.URL+"/login/username", url.Values{"id": {u.Query().Get("authRequestID")}, "username": {name}, "password": {Password}})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Fatalf("log in at the provider: %d %s", resp.StatusCode, text)
	}
	return follow(t, c, p.absolute(resp.Header.Get("Location")))
}

func (p *Provider) absolute(location string) string {
	if strings.HasPrefix(location, "/") {
		return p.URL + location
	}
	return location
}

func follow(t testing.TB, c *http.Client, address string) string {
	t.Helper()
	resp, err := c.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Fatalf("GET %s: %d %s", address, resp.StatusCode, text)
	}
	return resp.Header.Get("Location")
}

func (p Person) login() string { name, _, _ := strings.Cut(p.Email, "@"); return name }

// users are the accounts, as the provider's storage asks for them.
type users struct{ p *Provider }

func (u users) find(match func(Person) bool) *storage.User {
	u.p.mu.Lock()
	defer u.p.mu.Unlock()
	for _, person := range u.p.people {
		if match(person) {
			return &storage.User{ID: person.Subject, Username: person.login(), Password: Password, FirstName: "A", LastName: "Person", Email: person.Email, EmailVerified: true}
		}
	}
	return nil
}

func (u users) GetUserByID(id string) *storage.User {
	return u.find(func(p Person) bool { return p.Subject == id })
}

func (u users) GetUserByUsername(name string) *storage.User {
	return u.find(func(p Person) bool { return p.login() == name })
}

func (u users) ExampleClientID() string { return "service" }

// store is the provider's storage, with groups, clients and keys of the test.
type store struct {
	*storage.Storage
	p *Provider
}

func (s *store) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if c, ok := s.p.clients[id]; ok {
		return c, nil
	}
	return nil, oidc.ErrInvalidClient()
}

func (s *store) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	if id != ClientID || secret != Secret {
		return oidc.ErrInvalidClient()
	}
	return nil
}

func (s *store) addGroups(info *oidc.UserInfo, subject string, idToken bool) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if idToken && s.p.inInfo {
		return
	}
	for _, person := range s.p.people {
		if person.Subject == subject {
			info.AppendClaims("groups", person.Groups)
		}
	}
}

func (s *store) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, token op.IDTokenRequest, scopes []string) error {
	if err := s.Storage.SetUserinfoFromRequest(ctx, info, token, scopes); err != nil {
		return err
	}
	s.addGroups(info, token.GetSubject(), true)
	return nil
}

func (s *store) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	if err := s.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin); err != nil {
		return err
	}
	s.addGroups(info, subject, false)
	return nil
}

func (s *store) SigningKey(context.Context) (op.SigningKey, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.p.key, nil
}

func (s *store) KeySet(context.Context) ([]op.Key, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.p.hidden {
		return nil, nil
	}
	return []op.Key{publicKey{s.p.key}}, nil
}

// client is the client with the addresses that were registered.
type client struct {
	*storage.Client
	redirects, signedOut []string
}

func (c client) RedirectURIs() []string               { return c.redirects }
func (c client) PostLogoutRedirectURIs() []string     { return c.signedOut }
func (c client) IDTokenUserinfoClaimsAssertion() bool { return true }

type signingKey struct {
	id      string
	private *rsa.PrivateKey
}

func newKey(t testing.TB) *signingKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &signingKey{id: rand.Text(), private: key}
}

func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k *signingKey) Key() any                                    { return k.private }
func (k *signingKey) ID() string                                  { return k.id }

type publicKey struct{ *signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.private.PublicKey }
