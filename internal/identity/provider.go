package identity

import (
	"context"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Config of a Provider.
type Config struct {
	Issuer       string
	ClientID     string
	ClientSecret string // "" for a public client
	Scopes       []string
	GroupsClaim  string
	Grants       Grants
	RedirectURL  string // where the provider sends browsers back to
	SignedOutURL string // where the provider may send browsers after they signed out there
	Ring         Ring
	Client       *http.Client // for requests to the provider; see NewClient
	Now          func() time.Time
	Log          *slog.Logger
}

// A Provider is an identity provider, seen from this server.
type Provider struct {
	cfg Config

	known atomic.Pointer[discovered]

	running context.Context // ends with Close
	stop    context.CancelFunc

	asking  sync.Mutex // held while the provider is asked for its document
	refusal error      // of the last time, or nil; under asking
}

// discovered is what the discovery document says.
type discovered struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	oauth    oauth2.Config
	meta     metadata
	at       time.Time
}

// metadata are the members of the discovery document that package oidc does not read.
type metadata struct {
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	JWKSURI               string   `json:"jwks_uri"`
	Algorithms            []string `json:"id_token_signing_alg_values_supported"`
	EndSessionEndpoint    string   `json:"end_session_endpoint"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	SendsIssuer           bool     `json:"authorization_response_iss_parameter_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	ScopesSupported       []string `json:"scopes_supported"`
}

const (
	requestTimeout = 10 * time.Second // of a request to the provider
	maxAnswer      = 1 << 20          // of the provider
	documentAge    = time.Hour        // after which the discovery document is read again
	// maxSkew is how far the provider's clock may be from ours. It bounds every check of a time in a token.
	maxSkew = time.Minute
)

// NewClient returns the client for requests to the provider. It trusts the authorities of the system and the extra ones, and asks a proxy that the
// environment names.
func NewClient(extra *x509.CertPool) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if extra != nil {
		t.TLSClientConfig.RootCAs = extra
	}
	t.MaxIdleConnsPerHost = 2
	return &http.Client{Timeout: requestTimeout, Transport: capped{t}, CheckRedirect: checkRedirect}
}

// checkRedirect follows no redirect to an address that is less safe.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) >= 10 || via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return errors.New("redirect refused")
	}
	return nil
}

// capped bounds the size of answers.
type capped struct{ next http.RoundTripper }

func (c capped) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	if err == nil {
		resp.Body = &cappedBody{ReadCloser: resp.Body, left: maxAnswer}
	}
	return resp, err
}

// CloseIdleConnections lets http.Client close the transport's.
func (c capped) CloseIdleConnections() {
	if t, ok := c.next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

type cappedBody struct {
	io.ReadCloser
	left int
}

var errTooLong = fmt.Errorf("the answer is longer than %d bytes", maxAnswer)

func (b *cappedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// New returns a Provider. It asks nothing of the provider yet.
func New(cfg Config) *Provider {
	p := &Provider{cfg: cfg}
	p.running, p.stop = context.WithCancel(context.Background())
	return p
}

// Check reads the discovery document, unless it was read lately.
func (p *Provider) Check() error {
	_, err := p.discover()
	return err
}

// Close ends requests for the discovery document, and idle connections.
func (p *Provider) Close() {
	p.stop()
	p.cfg.Client.CloseIdleConnections()
}

// discover returns what the discovery document says. One goroutine at a time asks the provider; those that waited for it share its result. A document that was
// read before serves while the provider does not answer.
func (p *Provider) discover() (*discovered, error) {
	if d := p.known.Load(); d != nil && p.cfg.Now().Sub(d.at) < documentAge {
		return d, nil
	}
	waited := !p.asking.TryLock()
	if waited {
		p.asking.Lock()
	}
	defer p.asking.Unlock()
	old := p.known.Load()
	if old != nil && p.cfg.Now().Sub(old.at) < documentAge {
		return old, nil
	}
	if waited && p.refusal != nil {
		return nil, p.refusal
	}
	d, err := p.read(p.running) // for all that wait
	switch {
	case err == nil:
		if old != nil && d.meta.JWKSURI == old.meta.JWKSURI && slices.Equal(d.meta.Algorithms, old.meta.Algorithms) {
			d.verifier = old.verifier // which has the keys
		}
	case old != nil:
		p.cfg.Log.Warn("discovery document of the identity provider was not read again", "issuer", p.cfg.Issuer, "error", clip(err))
		again := *old
		d = &again
	default:
		p.refusal = refuse(Unavailable, err, "The identity provider does not answer as it should. Try again in a moment; an API key works meanwhile.")
		return nil, p.refusal
	}
	d.at, p.refusal = p.cfg.Now(), nil
	p.known.Store(d)
	return d, nil
}

func (p *Provider) read(ctx context.Context) (*discovered, error) {
	found, err := oidc.NewProvider(p.client(ctx), p.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("read discovery document: %w", err)
	}
	d := &discovered{provider: found}
	if err := found.Claims(&d.meta); err != nil {
		return nil, fmt.Errorf("read discovery document: %w", err)
	}
	for name, endpoint := range map[string]string{
		"authorization_endpoint": d.meta.AuthorizationEndpoint, "token_endpoint": d.meta.TokenEndpoint, "jwks_uri": d.meta.JWKSURI,
	} {
		if err := p.checkEndpoint(endpoint); err != nil {
			return nil, fmt.Errorf("discovery document: %s: %w", name, err)
		}
	}
	if userInfo := found.UserInfoEndpoint(); userInfo != "" {
		if err := p.checkEndpoint(userInfo); err != nil {
			return nil, fmt.Errorf("discovery document: userinfo_endpoint: %w", err)
		}
	}
	if p.checkEndpoint(d.meta.EndSessionEndpoint) != nil {
		d.meta.EndSessionEndpoint = ""
	}
	// Times are checked by Finish, within maxSkew.
	d.verifier = found.Verifier(&oidc.Config{ClientID: p.cfg.ClientID, SkipExpiryCheck: true})
	d.oauth = oauth2.Config{ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: p.cfg.RedirectURL, Scopes: p.cfg.Scopes}
	d.oauth.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	methods := d.meta.TokenAuthMethods
	if p.cfg.ClientSecret == "" || len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") {
		d.oauth.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return d, nil
}

// checkEndpoint refuses an address that is less safe than the issuer's.
func (p *Provider) checkEndpoint(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return errors.New("is missing, or no URL")
	}
	if issuer, err := url.Parse(p.cfg.Issuer); u.Scheme != "https" && (err != nil || u.Scheme != issuer.Scheme) {
		return fmt.Errorf("has the scheme %s, and the issuer has another", u.Scheme)
	}
	return nil
}

func (p *Provider) client(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.cfg.Client)
}

const flowBound = "sign-in flow"

// Start begins a sign-in. It returns the provider's page to open, and the content of the cookie that the browser has to bring to Finish.
func (p *Provider) Start(returnTo string, before Before) (location, cookie string, err error) {
	returnTo, err = checkReturn(returnTo)
	if err != nil {
		return "", "", err
	}
	d, err := p.discover()
	if err != nil {
		return "", "", err
	}
	f := flow{State: token(), Nonce: token(), Verifier: oauth2.GenerateVerifier(), Return: returnTo, Until: p.cfg.Now().Add(FlowLife), Before: before}
	if cookie, err = Seal(p.cfg.Ring, f, flowBound); err != nil {
		return "", "", err
	}
	return d.oauth.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), cookie, nil
}

// Arrived is a person who came back from the provider.
type Arrived struct {
	User   godwit.User
	Groups []string
	Places []Place
	Return string // page to open
	Before Before
}

// Finish ends a sign-in: with the cookie of Start and the query of the callback it finds out who the person is and where the person may act. On a refusal for
// want of a grant it also returns the person.
func (p *Provider) Finish(ctx context.Context, cookie string, query url.Values) (*Arrived, error) {
	f, err := p.resume(cookie, query)
	if err != nil {
		return nil, err
	}
	d, err := p.discover()
	if err != nil {
		return nil, err
	}
	if err := p.checkResponse(d, query); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(p.client(ctx), 3*requestTimeout)
	defer cancel()
	tokens, err := d.oauth.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return nil, exchangeRefusal(err)
	}
	id, c, err := p.verify(ctx, d, tokens, f)
	if err != nil {
		return nil, err
	}
	groups, err := p.groups(ctx, d, tokens, id, c)
	if err != nil {
		return nil, err
	}
	a := &Arrived{
		User: godwit.NewUser(p.cfg.Issuer, id.Subject, c.userName(id.Subject)), Groups: groups, Places: p.cfg.Grants.For(groups), Return: f.Return, Before: f.Before,
	}
	if len(a.Places) == 0 {
		return a, refuse(NoGrant, nil, "You are signed in at the identity provider as %s, and none of your groups may use this server. Ask the operator of this server for access.", a.User.Name)
	}
	return a, nil
}

// resume opens the cookie of a sign-in and compares its state with that of the callback.
func (p *Provider) resume(cookie string, query url.Values) (*flow, error) {
	var f flow
	if cookie == "" {
		return nil, refuse(NoFlow, nil, "This browser has not begun to sign in here, or did so at another address of this server. Begin again.")
	}
	if err := Open(p.cfg.Ring, cookie, &f, flowBound); err != nil {
		return nil, refuse(NoFlow, err, "The sign-in that this browser began cannot be read. Begin again.")
	}
	if states := query["state"]; len(states) != 1 || subtle.ConstantTimeCompare([]byte(states[0]), []byte(f.State)) != 1 {
		return nil, refuse(NoFlow, errors.New("state differs"), "This answer of the identity provider belongs to another sign-in. Begin again.")
	}
	if !p.cfg.Now().Before(f.Until) {
		return nil, refuse(Late, nil, "The sign-in took longer than %d minutes. Begin again.", int(FlowLife.Minutes()))
	}
	return &f, nil
}

// checkResponse checks the provider's answer, after its state.
func (p *Provider) checkResponse(d *discovered, query url.Values) error {
	// RFC 9207: the answer names its issuer, so that that of another provider is not taken for this one's.
	if issuer := query.Get("iss"); issuer != p.cfg.Issuer && (issuer != "" || d.meta.SendsIssuer) {
		return refuse(BadToken, fmt.Errorf("iss of the response is %.100q", issuer), "The answer comes from another identity provider.")
	}
	if code := query.Get("error"); code != "" {
		cause := fmt.Errorf("provider answered %.100q: %.200q", code, query.Get("error_description"))
		if code == "temporarily_unavailable" || code == "server_error" {
			return refuse(Unavailable, cause, "The identity provider cannot sign people in at the moment. Try again later.")
		}
		return refuse(Declined, cause, "The identity provider did not sign you in (%s).", printable(code[:min(len(code), 60)]))
	}
	if len(query["code"]) != 1 || query.Get("code") == "" {
		return refuse(BadToken, errors.New("no code"), "The answer of the identity provider has no code.")
	}
	return nil
}

func exchangeRefusal(err error) error {
	var answered *oauth2.RetrieveError
	if errors.As(err, &answered) && answered.Response != nil && answered.Response.StatusCode < http.StatusInternalServerError {
		// The error's text has the body of the answer, which is none of the log's business.
		cause := fmt.Errorf("token endpoint answered %d %.60q: %.200q", answered.Response.StatusCode, answered.ErrorCode, answered.ErrorDescription)
		return refuse(BadToken, cause, "The identity provider did not accept the code of this sign-in: it was used before, or it is too old. Begin again.")
	}
	if answered != nil {
		err = fmt.Errorf("token endpoint answered %d", answered.Response.StatusCode)
	}
	return refuse(Unavailable, err, "The identity provider does not answer as it should. Try again in a moment.")
}

// verify checks the ID token and returns it with its claims.
func (p *Provider) verify(ctx context.Context, d *discovered, tokens *oauth2.Token, f *flow) (*oidc.IDToken, claims, error) {
	untrusted := func(err error) (*oidc.IDToken, claims, error) {
		return nil, nil, refuse(BadToken, err, "The answer of the identity provider does not prove who you are. Begin again; if that does not help, the log of this server says what is wrong.")
	}
	raw, _ := tokens.Extra("id_token").(string)
	if raw == "" {
		return untrusted(errors.New("the answer has no ID token"))
	}
	id, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return untrusted(err)
	}
	var c claims
	if err := id.Claims(&c); err != nil {
		return untrusted(err)
	}
	switch azp, given := c["azp"]; {
	case id.Subject == "" || len(id.Subject) > 255:
		return untrusted(errors.New("the subject is missing or too long"))
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1:
		return untrusted(errors.New("the nonce is not that of this sign-in"))
	case given && azp != p.cfg.ClientID:
		return untrusted(fmt.Errorf("azp is %.100q", fmt.Sprint(azp)))
	case !given && len(id.Audience) > 1:
		return untrusted(errors.New("the audience has several members, and azp is missing"))
	}
	if err := p.checkTimes(id, c); err != nil {
		return untrusted(err)
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(tokens.AccessToken); err != nil {
			return untrusted(err)
		}
	}
	return id, c, nil
}

// checkTimes refuses a token that is not of now, as far as two clocks agree.
func (p *Provider) checkTimes(id *oidc.IDToken, c claims) error {
	now := p.cfg.Now()
	switch {
	case !now.Before(id.Expiry.Add(maxSkew)):
		return fmt.Errorf("the token expired at %s", id.Expiry.UTC().Format(time.RFC3339))
	case id.IssuedAt.IsZero() || id.IssuedAt.Unix() == 0:
		return errors.New("the token does not say when it was issued")
	case id.IssuedAt.After(now.Add(maxSkew)):
		return fmt.Errorf("the token was issued at %s, which is yet to come", id.IssuedAt.UTC().Format(time.RFC3339))
	}
	if v, ok := c["nbf"]; ok {
		seconds, ok := v.(float64)
		if !ok || time.Unix(int64(seconds), 0).After(now.Add(maxSkew)) {
			return fmt.Errorf("the token is not valid yet (nbf %v)", v)
		}
	}
	return nil
}

// groups returns the person's groups from the ID token or, if it has none, from the provider's userinfo.
func (p *Provider) groups(ctx context.Context, d *discovered, tokens *oauth2.Token, id *oidc.IDToken, c claims) ([]string, error) {
	name := p.cfg.GroupsClaim
	list, found, err := c.groups(name)
	if err == nil && !found && c.overflown(name) {
		return nil, refuse(TooManyGroups, nil, "You are in more groups than the identity provider puts into its answer. The operator can have it send only the groups of this application, or use roles.")
	}
	if err == nil && !found && d.provider.UserInfoEndpoint() != "" {
		list, err = p.userinfoGroups(ctx, d, tokens, id)
	}
	if r := AsRefusal(err); r != nil {
		return nil, r
	}
	if err != nil {
		return nil, refuse(BadToken, err, "The identity provider does not tell your groups in a form that this server understands.")
	}
	return list, nil
}

func (p *Provider) userinfoGroups(ctx context.Context, d *discovered, tokens *oauth2.Token, id *oidc.IDToken) ([]string, error) {
	info, err := d.provider.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return nil, refuse(Unavailable, err, "The identity provider does not tell your groups. Try again in a moment.")
	}
	if info.Subject != id.Subject {
		return nil, refuse(BadToken, errors.New("userinfo is about another subject"), "The identity provider told about another person.")
	}
	var c claims
	if err := info.Claims(&c); err != nil {
		return nil, err
	}
	list, _, err := c.groups(p.cfg.GroupsClaim)
	return list, err
}

// SignOutURL returns the page where people sign out at the provider, or "" if it has none.
func (p *Provider) SignOutURL() (string, error) {
	d, err := p.discover()
	if err != nil || d.meta.EndSessionEndpoint == "" {
		return "", err
	}
	u, err := url.Parse(d.meta.EndSessionEndpoint)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set("client_id", p.cfg.ClientID)
	q.Set("post_logout_redirect_uri", p.cfg.SignedOutURL)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// CanSignOut reports whether the provider is known to have a page to sign out. It asks nothing of the provider.
func (p *Provider) CanSignOut() bool {
	d := p.known.Load()
	return d != nil && d.meta.EndSessionEndpoint != ""
}
