// Package oauth2cc gets bearer tokens by the OAuth 2.0 client credentials grant (RFC 6749, section 4.4).
//
//	Token ─► cached and not about to expire? ─► yes: return it
//	      ─► no: one caller asks the token endpoint, the others wait for its answer
//
// Requests go through the sender, so that the token endpoint meets the same address guard, TLS verification, deadline and
// caps as a delivery. An error says what went wrong with the status and the endpoint's error code; it holds neither secret
// nor token, nor text that the token endpoint wrote.
//
// The package does not retry and does not refresh ahead of time: an attempt that finds no token fails, and its retry asks
// again.
package oauth2cc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/sender"
)

const (
	// margin is the time before its expiry from which a token is no longer used: it must last until the receiver checks it.
	margin = 30 * time.Second
	// unknownLifetime is how long a token without a stated lifetime is kept. A 401 ends it sooner.
	unknownLifetime = 5 * time.Minute
	maxToken        = 16 << 10
)

// Config configures a Source.
type Config struct {
	// TokenURL is the token endpoint. Required.
	TokenURL string

	// ClientID and ClientSecret are the credentials from the authorization server. Required.
	ClientID, ClientSecret string

	// Scopes are asked for. Defaults to none: the authorization server decides.
	Scopes []string

	// Audience is sent as audience, which some servers require. Defaults to none.
	Audience string

	// SecretInBody sends id and secret as form fields, for servers that do not accept HTTP Basic. Defaults to false.
	SecretInBody bool

	// Timeout limits a token request, within the attempt's deadline. Defaults to 30 s.
	Timeout time.Duration

	// Clock is used for the expiry of tokens. Required.
	Clock func() time.Time
}

// A Sender makes requests; *sender.Sender does.
type Sender interface {
	Send(context.Context, *sender.Request) godwit.Exchange
	CheckURL(string) error
}

// A Source hands out tokens for one client. It is safe for concurrent use.
type Source struct {
	cfg    Config
	sender Sender
	turn   chan struct{} // holds one value while a caller requests a token

	mu       sync.Mutex
	token    string
	expires  time.Time
	failures uint64 // number of failed token requests
	lastErr  error
}

// New returns a Source. It requests no token yet.
func New(s Sender, cfg Config) (*Source, error) {
	switch {
	case cfg.Clock == nil:
		return nil, errors.New("oauth2cc: Clock is required")
	case cfg.ClientID == "" || cfg.ClientSecret == "":
		return nil, errors.New("oauth2cc: client id and secret are required")
	}
	if err := s.CheckURL(cfg.TokenURL); err != nil {
		return nil, fmt.Errorf("check token endpoint: %w", err)
	}
	return &Source{cfg: cfg, sender: s, turn: make(chan struct{}, 1)}, nil
}

// Token returns a token that is valid now. The error is a *TokenError, or the context's cause.
func (s *Source) Token(ctx context.Context) (string, error) {
	token, failuresBefore, _ := s.cached()
	if token != "" {
		return token, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("wait for token: %w", context.Cause(ctx))
	}
	token, failures, lastErr := s.cached()
	switch {
	case token != "":
		return token, nil
	case failures != failuresBefore:
		return "", lastErr // the request we waited for failed: callers that waited do not repeat it
	}
	return s.ask(ctx)
}

// Invalidate forgets a token that a receiver refused, so that the next call requests a new one. A token that was replaced
// meanwhile is kept.
func (s *Source) Invalidate(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == token {
		s.token = ""
	}
}

func (s *Source) cached() (token string, failures uint64, lastErr error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != "" && s.cfg.Clock().Before(s.expires) {
		token = s.token
	}
	return token, s.failures, s.lastErr
}

// ask requests a token and keeps the result, unless this program interrupted the request.
func (s *Source) ask(ctx context.Context) (string, error) {
	asked := s.cfg.Clock()
	token, lifetime, err := s.request(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			s.failures++
			s.lastErr = err
		}
		return "", err
	}
	s.token, s.expires = token, asked.Add(lifetime-min(margin, lifetime/2))
	return token, nil
}

func (s *Source) request(ctx context.Context) (token string, lifetime time.Duration, err error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(s.cfg.Scopes) > 0 {
		form.Set("scope", strings.Join(s.cfg.Scopes, " "))
	}
	if s.cfg.Audience != "" {
		form.Set("audience", s.cfg.Audience)
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	if s.cfg.SecretInBody {
		form.Set("client_id", s.cfg.ClientID)
		form.Set("client_secret", s.cfg.ClientSecret)
	} else {
		// Both are form-encoded before they go into Basic (RFC 6749, section 2.3.1).
		pair := url.QueryEscape(s.cfg.ClientID) + ":" + url.QueryEscape(s.cfg.ClientSecret)
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	x := s.sender.Send(ctx, &sender.Request{
		URL: s.cfg.TokenURL, Header: header, Body: []byte(form.Encode()), Timeout: s.cfg.Timeout,
	})
	return readToken(x)
}

// reply is the answer of a token endpoint (RFC 6749, sections 5.1 and 5.2).
type reply struct {
	AccessToken string      `json:"access_token"`
	TokenType   string      `json:"token_type"`
	ExpiresIn   json.Number `json:"expires_in"` // some servers send a string
	Error       string      `json:"error"`
}

func readToken(x godwit.Exchange) (string, time.Duration, error) {
	if x.Failure != nil {
		return "", 0, &TokenError{Failure: x.Failure.Kind}
	}
	var r reply
	err := json.Unmarshal(x.Body, &r)
	fail := &TokenError{Status: x.Status, Code: errorCode(r.Error)}
	switch {
	case x.Status < 200 || x.Status > 299:
		return "", 0, fail
	case err != nil || x.BodyCapped:
		fail.Problem = "reply is not JSON of the expected form"
	case r.AccessToken == "" || len(r.AccessToken) > maxToken || sender.CheckHeader("Authorization", r.AccessToken) != nil:
		fail.Problem = "reply holds no usable access token"
	case r.TokenType != "" && !strings.EqualFold(r.TokenType, "Bearer"):
		fail.Problem = "token is not of type Bearer"
	default:
		return r.AccessToken, lifetime(r.ExpiresIn), nil
	}
	return "", 0, fail
}

func lifetime(n json.Number) time.Duration {
	seconds, err := n.Float64()
	if err != nil || seconds <= 0 {
		return unknownLifetime
	}
	return time.Duration(min(seconds, 365*24*60*60) * float64(time.Second))
}

// errorCode returns only the codes that RFC 6749 and RFC 8707 define. Other text could repeat the secret.
func errorCode(code string) string {
	switch code {
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
		"invalid_scope", "access_denied", "server_error", "temporarily_unavailable", "invalid_target":
		return code
	}
	return ""
}

// A TokenError says why there is no token.
type TokenError struct {
	Failure godwit.FailureKind // the request failed; then there is no status
	Status  int                // what the token endpoint answered
	Code    string             // the endpoint's error code, if it is a known one
	Problem string             // what is wrong with a reply of 2xx
}

func (e *TokenError) Error() string {
	switch {
	case e.Failure != "":
		return "get token: " + string(e.Failure)
	case e.Problem != "":
		return "get token: " + e.Problem
	case e.Code != "":
		return fmt.Sprintf("get token: endpoint answered %d (%s)", e.Status, e.Code)
	default:
		return fmt.Sprintf("get token: endpoint answered %d", e.Status)
	}
}
