package godwit

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
)

func TestIDRoundTrip(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.UTC)
	id := NewEventID(now)
	if !id.Time().Equal(now) {
		t.Errorf("time of id %v, want %v", id.Time(), now)
	}
	if !strings.HasPrefix(id.String(), "evt_") || id.String()[18] != '7' {
		t.Errorf("%s is no prefixed UUIDv7", id)
	}
	text, _ := json.Marshal(id)
	var back EventID
	if err := json.Unmarshal(text, &back); err != nil || back != id {
		t.Errorf("%s came back as %s: %v", id, back, err)
	}
	first := FirstIDAt[eventKind](now)
	if string(first[:]) > string(id[:]) {
		t.Error("the first id of a millisecond sorts behind one minted in it")
	}
}

func TestParseIDRefusesOthers(t *testing.T) {
	id := NewEventID(time.Unix(1, 0)).String()
	for _, s := range []string{"", "evt_", id[4:], "del_" + id[4:], id + "0", id[:39], strings.Replace(id, "-", "x", 1), "evt_" + strings.Repeat("z", 36), "evt_00000000-0000-0000-0000-000000000000"} {
		if _, err := ParseEventID(s); !errors.Is(err, ErrBadID) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add(NewEventID(time.Unix(1, 0)).String())
	f.Add("evt_")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseEventID(s); err == nil && !strings.EqualFold(id.String(), s) {
			t.Errorf("%q parsed as %s", s, id)
		}
	})
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, eventType string
		want               bool
	}{
		{"*", "order.paid", true}, {"order.paid", "order.paid", true}, {"order.paid", "order.paid.late", false},
		{"order.*", "order.paid", true}, {"order.*", "order.item.added", true}, {"order.*", "order", false},
		{"order.*", "orders.paid", false}, {"order.item.*", "order.paid", false},
	} {
		if got := MatchPattern(c.pattern, c.eventType); got != c.want {
			t.Errorf("%s on %s: %v", c.pattern, c.eventType, got)
		}
	}
	for _, bad := range []string{"", "*.paid", "order.*.x", "or*der", ".", "order.", "a b", "é", "order..paid", "**", strings.Repeat("a", 129)} {
		if ValidPattern(bad) == "" {
			t.Errorf("pattern %q was taken", bad)
		}
	}
	for _, good := range []string{"*", "order", "order.paid", "order.*", "a-b.c_d.*"} {
		if why := ValidPattern(good); why != "" {
			t.Errorf("pattern %q: %s", good, why)
		}
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("order.*", "order.paid")
	f.Fuzz(func(t *testing.T, pattern, eventType string) {
		if ValidPattern(pattern) == "" && ValidEventType(eventType) == "" && MatchPattern(pattern, eventType) &&
			pattern != "*" && !strings.HasPrefix(eventType, strings.TrimSuffix(pattern, "*")) {
			t.Errorf("%q matched %q", pattern, eventType)
		}
	})
}

func TestFilter(t *testing.T) {
	f := Filter{"region": {"eu", "us"}, "tier": {"gold"}}
	for _, c := range []struct {
		attributes map[string]string
		want       bool
	}{
		{map[string]string{"region": "eu", "tier": "gold"}, true},
		{map[string]string{"region": "eu", "tier": "gold", "more": "x"}, true},
		{map[string]string{"region": "eu"}, false}, {map[string]string{"region": "asia", "tier": "gold"}, false}, {nil, false},
	} {
		if got := f.Match(c.attributes); got != c.want {
			t.Errorf("%v: %v", c.attributes, got)
		}
	}
	if !Filter(nil).Match(nil) {
		t.Error("no filter lets everything through")
	}
}

func TestIdempotencyIDKeepsPartsApart(t *testing.T) {
	trace.Covers(t, "EDS-KEY-5", "IKH-SEC-6")
	a, b := NewKeyID(time.Unix(1, 0)), NewKeyID(time.Unix(1, 0))
	seen := map[[32]byte]string{}
	for name, id := range map[string][32]byte{
		"a":               IdempotencyID(a, "POST /v1/events", "key"),
		"other principal": IdempotencyID(b, "POST /v1/events", "key"),
		"moved boundary":  IdempotencyID(a, "POST /v1/event", "skey"),
		"other operation": IdempotencyID(a, "POST /v1/endpoints", "key"),
		"other key":       IdempotencyID(a, "POST /v1/events", "keY"),
	} {
		if other, twice := seen[id]; twice {
			t.Errorf("%s and %s share an id", name, other)
		}
		seen[id] = name
	}
}

func TestAPIKeyLife(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		key  APIKey
		live bool
	}{
		"no end": {APIKey{}, true}, "before its end": {APIKey{ExpiresAt: now.Add(1)}, true},
		"at its end": {APIKey{ExpiresAt: now}, false}, "revoked": {APIKey{RevokedAt: now.Add(-1)}, false},
	} {
		if c.key.LiveAt(now) != c.live {
			t.Errorf("%s: live = %v", name, !c.live)
		}
	}
	token := MintToken()
	if token == MintToken() || len(token) < 43 || strings.Contains(TokenHint(token), token[12:]) {
		t.Error("a token is 256 random bits, and its hint does not give it away")
	}
}
