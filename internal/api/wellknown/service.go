package wellknown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/source"
)

// ServicePath is where operators of upstreams read how this service handles their deliveries (EDS-INT-9). It is JSON, or a
// page for clients that ask for HTML.
const ServicePath = "/.well-known/webhook-service"

// Service holds the values of the description that the other pages do not use.
type Service struct {
	Terms    source.Terms
	Deadline time.Duration // deadline of pass-through
	MaxBody  int64
}

// description is the service description. Its version covers the member terms.
type description struct {
	Service  string       `json:"service"`
	Version  string       `json:"version"`
	Terms    source.Terms `json:"terms"`
	Roles    []titled     `json:"roles"`
	Modes    []modeTerms  `json:"modes"`
	Answers  []answerTerm `json:"pass_through_answers"`
	Keys     keyTerms     `json:"idempotency_key"`
	APIKeys  apiKeyTerms  `json:"api_idempotency_key"`
	Retries  []retryTerms `json:"retry_policies"`
	Schemes  []titled     `json:"inbound_schemes"`
	Replay   replayTerms  `json:"replay_protection"`
	Outbound []titled     `json:"outbound_signatures"`

	KeyIDs         string `json:"key_ids"`
	Agreements     string `json:"agreements"`
	Acknowledgment string `json:"acknowledgment"`
	Ordering       string `json:"version_ordering"`
	MaxBody        int64  `json:"max_body_bytes"`
}

type titled struct {
	Name string `json:"name"`
	Doc  string `json:"description"`
}

type modeTerms struct {
	Name     string  `json:"name"`
	Doc      string  `json:"description"`
	Answer   int     `json:"success_status"`
	Deadline float64 `json:"deadline_seconds,omitempty"`
}

type answerTerm struct {
	Status int    `json:"status"`
	When   string `json:"when"`
}

type keyTerms struct {
	Required    bool    `json:"required"`
	Syntax      string  `json:"syntax"`
	MinLength   int     `json:"min_length"`
	MaxLength   int     `json:"max_length"`
	Window      float64 `json:"window_seconds"`
	Expiry      string  `json:"expiry"`
	Scope       string  `json:"scope"`
	Fingerprint string  `json:"fingerprint"`
	Adopted     string  `json:"adopted"`
	Page        string  `json:"documentation"`
}

// apiKeyTerms are the rules for idempotency keys of requests to the API.
type apiKeyTerms struct {
	Required  bool    `json:"required"`
	MinLength int     `json:"min_length"`
	MaxLength int     `json:"max_length"`
	Window    float64 `json:"window_seconds"`
	Page      string  `json:"documentation"`
}

type retryTerms struct {
	Profile    string    `json:"profile"`
	Base       float64   `json:"base_seconds,omitempty"`
	Cap        float64   `json:"cap_seconds,omitempty"`
	Schedule   []float64 `json:"schedule_seconds,omitempty"`
	MaxRetries int       `json:"max_retries"`
	MaxElapsed float64   `json:"max_elapsed_seconds"`
	Timeout    float64   `json:"attempt_timeout_seconds"`
	Jitter     string    `json:"jitter"`
	RetryAfter string    `json:"retry_after"`
	Dedup      float64   `json:"assumed_receiver_window_seconds"`
}

type replayTerms struct {
	Tolerance float64 `json:"tolerance_seconds"`
	Nonces    string  `json:"nonces"`
}

func newDescription(s *Service, keys idempotency.Config) description {
	return description{
		Service: "godwit", Version: s.Terms.Version(), Terms: s.Terms, MaxBody: s.MaxBody,
		Roles: []titled{
			{"producer", "events posted to the API are delivered to endpoints under a key of their own, or the poster's"},
			{"intermediary", "deliveries to /in/{source} go on to endpoints: same bytes, same media type, same Idempotency-Key, authenticated anew at each hop"},
			{"consumer", "toward upstreams: every delivery is authenticated, checked for freshness and deduplicated"},
		},
		Modes: []modeTerms{
			{string(godwit.StoreAndForward), "answered once the event is stored, before it is delivered; in force only while the upstream's acknowledgment of this description holds", http.StatusAccepted, 0},
			{string(godwit.PassThrough), "answered once every endpoint has accepted the event, else with what is known by the deadline; in force everywhere else. What an endpoint did not accept for now is also tried again by its own schedule", http.StatusOK, s.Deadline.Seconds()},
		},
		Answers: passThroughAnswers,
		Keys: keyTerms{
			Required: true, Syntax: `a structured-field String (RFC 9651): printable ASCII in double quotes, in one field line`,
			MinLength: keys.Format.MinLength, MaxLength: max(keys.Format.MaxLength, godwit.MaxRelayedKey), Window: s.Terms.DedupWindow,
			Expiry:      "a key is remembered for the window from its first acceptance; repeats do not prolong it",
			Scope:       "the upstream (the source, and the producer behind a relay's key id)",
			Fingerprint: keys.Fingerprint.Doc,
			Adopted:     "a source in adopt mode takes deliveries without a key: it is then made of the vendor's delivery id, the same for every repeat, and we are the Producer",
			Page:        "/docs/idempotency",
		},
		APIKeys: apiKeyTerms{
			MinLength: keys.Format.MinLength, MaxLength: keys.Format.MaxLength, Window: keys.TimeScale.Real(keys.Window).Seconds(), Page: "/docs/idempotency",
		},
		Retries: retriesOf(), Schemes: schemesOf(), Outbound: signaturesOf(),
		Replay:         replayTerms{source.Tolerance.Seconds(), "an RFC 9421 nonce that was seen is refused with 401; a retry carries another one under the same key"},
		KeyIDs:         "a relayed event is signed under the key id <secret id>/<origin>, one origin for each upstream: the same key, another id. Deduplicate by (key id's owner and origin, Idempotency-Key)",
		Agreements:     "an endpoint's deviations from its profile are listed as policy in /v1/endpoints/{id}; readings of status codes and PUT need a written agreement that both operators can read. None is in force otherwise",
		Acknowledgment: "POST /v1/sources/{id}/acknowledgments with version and by, by who administers the source; recorded with time and actor. No delivery can make one",
		Ordering:       "the last acknowledgment holds for every later description that promises at least as much: the same durability, no time or bound under terms smaller, no profile gone. A weaker one is a new version that needs a new acknowledgment; until then sources are passed through",
	}
}

var passThroughAnswers = []answerTerm{
	{200, "every endpoint has accepted the event"},
	{422, "nothing but refusals for good is left; the endpoints' statuses are in downstream"},
	{502, "an endpoint did not accept it for now, or no endpoint is for it; deliver again, it goes to those that are left"},
	{504, "the outcome at an endpoint is not known by the deadline; deliver again"},
}

func retriesOf() []retryTerms {
	var all []retryTerms
	for _, name := range profile.Names() {
		p, err := profile.Lookup(name)
		if err != nil {
			continue // listed already
		}
		d := p.Defaults()
		r := retryTerms{
			Profile: name, Base: d.Base.Seconds(), Cap: d.Cap.Seconds(), MaxRetries: d.MaxRetries, MaxElapsed: d.MaxElapsed.Seconds(),
			Timeout: d.Timeout.Seconds(), Dedup: d.DedupWindow.Seconds(), Jitter: "full: uniform between 0 and the window", RetryAfter: "a floor under the delay",
		}
		for _, delay := range d.Schedule {
			r.Schedule = append(r.Schedule, delay.Seconds())
		}
		if len(d.Schedule) > 0 {
			r.Base, r.Cap, r.Jitter = 0, 0, "lengthens a delay only"
		}
		if d.RetryAfterReplaces {
			r.RetryAfter = "takes the place of the delay"
		}
		all = append(all, r)
	}
	return all
}

func schemesOf() []titled {
	var all []titled
	for _, name := range source.Schemes() {
		all = append(all, titled{name, source.SchemeDoc(name)})
	}
	return all
}

func signaturesOf() []titled {
	var all []titled
	for _, name := range profile.Names() {
		if p, err := profile.Lookup(name); err == nil {
			all = append(all, titled{name, strings.Join(p.Algorithms(), ", ")})
		}
	}
	return all
}

// service holds both forms of the description, rendered once: it changes only with the configuration.
type service struct{ document, page []byte }

func newService(s *Service, keys idempotency.Config) (*service, error) {
	d := newDescription(s, keys)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, fmt.Errorf("encode service description: %w", err)
	}
	page, err := render(serviceTemplate, d)
	return &service{text.Bytes(), page}, err
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		page(s.page)(w, r)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "application/json")
	w.Write(s.document)
}
