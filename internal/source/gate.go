package source

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dunglas/httpsfv"
	"golang.org/x/net/http/httpguts"

	"github.com/godwit-hq/godwit/internal/cloudevents"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/receiver"
)

// Tolerance is the greatest difference between a signed time and the server's clock.
const Tolerance = 5 * time.Minute

// A Gate is a prepared source: its scheme with the credentials that are valid now.
type Gate struct {
	Source  *godwit.Source
	scheme  *scheme
	profile receiver.Profile
	until   time.Time // when the first of its credentials expires; zero if none does
}

// gates caches prepared gates: decrypting and preparing credentials costs more than verifying a request.
type gates struct {
	mu   sync.Mutex
	byID map[godwit.SourceID]*Gate
}

const mostGates = 4096

// Gate prepares a source, or returns it from the cache.
func (s *Sources) Gate(src *godwit.Source) (*Gate, error) {
	now := s.cfg.Now()
	s.gates.mu.Lock()
	g := s.gates.byID[src.ID]
	s.gates.mu.Unlock()
	if g != nil && g.Source.Version == src.Version && (g.until.IsZero() || now.Before(g.until)) {
		return g, nil
	}
	list, err := s.open(src)
	if err != nil {
		return nil, err
	}
	g = &Gate{Source: src, scheme: schemeNamed(src.Scheme)}
	if g.scheme == nil {
		return nil, errNoScheme
	}
	live := slices.DeleteFunc(list, func(c godwit.Credential) bool { return !c.LiveAt(now) })
	for i := range live {
		if end := live[i].ExpiresAt; !end.IsZero() && (g.until.IsZero() || end.Before(g.until)) {
			g.until = end
		}
	}
	if g.profile, err = g.scheme.prepare(src, live); err != nil {
		return nil, err
	}
	s.gates.mu.Lock()
	defer s.gates.mu.Unlock()
	if len(s.gates.byID) >= mostGates {
		clear(s.gates.byID)
	}
	s.gates.byID[src.ID] = g
	return g, nil
}

// At finds the source of a path: its id, or its tenant's public id and its name.
func (s *Sources) At(ctx context.Context, path string) (*godwit.Source, error) {
	if id, err := godwit.ParseSourceID(path); err == nil {
		return s.cfg.Store.SourceAt(ctx, id)
	}
	account, name, _ := strings.Cut(path, "/")
	code, err := profile.ParseCode(profile.CodeTenant, account)
	if err != nil || checkName(name) != "" {
		return nil, errNoSource
	}
	return s.cfg.Store.SourceNamed(ctx, code, name)
}

// Methods lists the methods that the upstream may use.
func (g *Gate) Methods() []string { return g.profile.Methods }

// Challenge returns the value of WWW-Authenticate.
func (g *Gate) Challenge() string { return g.profile.Challenge }

// InTheClear reports whether each request carries a secret, so that TLS is required.
func (g *Gate) InTheClear() bool { return g.profile.Credentials }

// Fingerprints reports whether a repeat must have the same bytes as the first request.
func (g *Gate) Fingerprints() bool { return !g.profile.NoFingerprint }

// Authenticate verifies a request and its freshness. The error is a *receiver.SignatureError, or a failure of the server.
func (g *Gate) Authenticate(ctx context.Context, m *receiver.Message, now time.Time) (receiver.Proof, error) {
	return g.profile.Authenticate(ctx, m, receiver.Check{Now: now, Tolerance: Tolerance})
}

// Handshake answers an authenticated request that is not an event.
func (g *Gate) Handshake(m *receiver.Message) (receiver.Answer, bool) {
	if g.profile.Handshake == nil {
		return receiver.Answer{}, false
	}
	return g.profile.Handshake(m)
}

// Origin returns the producer of the event. An upstream that relays for others names them after its key id, as Godwit does.
func (g *Gate) Origin(p *receiver.Proof) godwit.Origin {
	producer, _ := strings.CutPrefix(p.Principal, g.Source.ID.String())
	return godwit.Origin{Source: g.Source.ID, Principal: strings.TrimPrefix(producer, "/")}
}

// Identify reads the delivery id and type that the scheme defines. Sources with adopted keys use the upstream's delivery id
// as the key. For other sources the caller ignores the error, because they do not need a delivery id.
func (g *Gate) Identify(m *receiver.Message, p *receiver.Proof) (receiver.Identity, error) {
	// The Idempotency-Key is validated elsewhere; here an invalid one must not hide the other values of the scheme.
	id, err := g.profile.Identify(m, p, receiver.KeyPolicy{Min: 1, Max: godwit.MaxRelayedKey, Lenient: true})
	if name := g.Source.Settings.DeliveryHeader; name != "" {
		if id.Key, err = word(m, p, name), nil; id.Key == "" || len(id.Key) > 1024 {
			err = &receiver.DeliveryError{Code: receiver.CodeKeyMissing, Message: name + " is missing, not signed, or too long"}
		}
	}
	return id, err
}

// word returns the value of a field. It is "" if the signature covers fields but not this one: an unsigned field cannot be
// trusted (EDS-SEC-THR-3).
func word(m *receiver.Message, p *receiver.Proof, name string) string {
	if p.Covered != nil && !slices.Contains(p.Covered, strings.ToLower(name)) {
		return ""
	}
	return m.Field(name)
}

// KeySigned reports whether the signature protects the key: it covers the Idempotency-Key, or the delivery id is part of the
// signed data. Otherwise an attacker could send a captured request again under another key.
func (g *Gate) KeySigned(p *receiver.Proof, adopted bool) bool {
	switch {
	case p.SignedAt.IsZero():
		return true // nothing else is signed either: a credential, or a vendor that signs only the body
	case !adopted:
		return slices.Contains(p.Covered, "idempotency-key")
	case g.Source.Settings.DeliveryHeader != "":
		return p.Covered != nil // see Identify
	}
	return !g.scheme.looseID
}

// AdoptedKey derives the idempotency key of an event whose upstream sends none. The key depends only on the delivery id and
// the producer (EDS T-31). It has the form of a UUID.
func AdoptedKey(o godwit.Origin, delivery string) string {
	h := sha256.New()
	for _, part := range []string{"godwit adopted key", o.Source.String(), o.Principal, delivery} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8: custom (RFC 9562)
	t := hex.EncodeToString(b)
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}

// EventType applies the source's rule. It returns "" if the request does not determine a type.
func (g *Gate) EventType(m *receiver.Message, p *receiver.Proof, id *receiver.Identity, ce *cloudevents.Event) string {
	rule, found := &g.Source.EventType, ""
	switch {
	case rule.Header != "":
		found = word(m, p, rule.Header)
	case rule.Member != "":
		found = memberAt(m.Body, rule.Member)
	case rule.Fixed != "":
	case ce != nil && (ce.Headers == nil || word(m, p, cloudevents.TypeHeader) != ""):
		found = ce.Type
	default:
		found = id.EventType
	}
	if found = godwit.EventTypeFrom(found); found == "" {
		return rule.Fixed
	}
	return found
}

// memberAt returns the string at a path of members in a JSON body, or "".
func memberAt(body []byte, path string) string {
	value := json.RawMessage(body)
	for name := range strings.SplitSeq(path, ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return ""
		}
		value = members[name]
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// KeptHeaders returns the fields to forward: those that the source names, the attributes of a CloudEvent in binary mode, and
// the origin's own signature if the source has one. Fields that Connection names belong to the hop and are never forwarded
// (RFC 9110, section 7.6.1).
func (g *Gate) KeptHeaders(h http.Header, ce *cloudevents.Event) ([]godwit.KeptHeader, *godwit.FieldError) {
	var kept []godwit.KeptHeader
	if ce != nil {
		kept = append(kept, ce.Headers...)
	}
	for _, name := range g.Source.Keep {
		if strings.HasPrefix(name, "Ce-") && ce != nil || httpguts.HeaderValuesContainsToken(h["Connection"], name) {
			continue // present already, or not forwarded
		}
		for _, value := range h[name] {
			if len(value) > godwit.MaxKeptHeaderSize || !godwit.Carriable(value) {
				return nil, fieldError(name, "must be UTF-8 of at most %d bytes, without control characters, to go on", godwit.MaxKeptHeaderSize)
			}
			kept = append(kept, godwit.KeptHeader{Name: name, Value: value})
		}
	}
	if len(kept) > 2*godwit.MaxKeptHeaders {
		return nil, fieldError("headers", "more than %d lines would go on", 2*godwit.MaxKeptHeaders)
	}
	return append(kept, g.originSignature(h)...), nil
}

// originSignature returns the signature with the source's end-to-end label, and the digest that it covers. The signature of
// the hop is not forwarded.
func (g *Gate) originSignature(h http.Header) []godwit.KeptHeader {
	label := g.Source.Settings.EndToEnd
	if label == "" {
		return nil
	}
	var kept []godwit.KeptHeader
	for _, name := range []string{"Signature-Input", "Signature"} {
		dictionary, err := httpsfv.UnmarshalDictionary(h[name])
		if err != nil {
			return nil
		}
		member, ok := dictionary.Get(label)
		if !ok {
			return nil
		}
		alone := httpsfv.NewDictionary()
		alone.Add(label, member)
		text, err := httpsfv.Marshal(alone)
		if err != nil {
			return nil
		}
		kept = append(kept, godwit.KeptHeader{Name: name, Value: text})
	}
	for _, value := range h["Content-Digest"] {
		kept = append(kept, godwit.KeptHeader{Name: "Content-Digest", Value: value})
	}
	return kept
}
