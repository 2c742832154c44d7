package inbound

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/source"
	"github.com/godwit-hq/godwit/receiver"
)

// key returns the upstream's key, unchanged. Only a source with adopted keys may omit it: Godwit is then the Producer and
// derives the key from the upstream's delivery id (decision 15, EDS T-31). The header field is returned if its bytes hold
// more than the key; they are then forwarded unchanged.
func (x *exchange) key(o godwit.Origin, id *receiver.Identity, wrong error) (key string, field *godwit.KeptHeader, err error) {
	adopted := x.src.Adopt && !idempotency.Present(x.r.Header)
	if adopted {
		key, err = adoptedKey(o, id, wrong)
	} else {
		key, field, err = x.sentKey()
	}
	if err == nil && x.proof.Once != "" && !x.gate.KeySigned(&x.proof, adopted) {
		err = x.bind(key)
	}
	return key, field, err
}

func adoptedKey(o godwit.Origin, id *receiver.Identity, wrong error) (string, error) {
	if bad := (*receiver.DeliveryError)(nil); errors.As(wrong, &bad) {
		return "", problem.KeyMissing.With("no key can be made of the delivery's own id: %s", bad.Message)
	}
	if wrong != nil {
		return "", wrong
	}
	return source.AdoptedKey(o, id.Key), nil
}

// sentKey reads the Idempotency-Key. Parameters are ignored and forwarded with it (IKH K-2). A key without quotes is
// accepted if the source allows it (EDS T-1).
func (x *exchange) sentKey() (string, *godwit.KeptHeader, error) {
	format := x.cfg.Intake.KeyFormat()
	format.MaxLength = max(format.MaxLength, godwit.MaxRelayedKey)
	lines := x.r.Header[idempotency.Header]
	key, err := format.Parse(x.r.Header)
	if x.src.Settings.LenientKey && errors.Is(err, problem.KeyMalformed) {
		if bare, bad := receiver.ParseKey(lines, receiver.KeyPolicy{Min: 1, Max: format.MaxLength, Lenient: true}); bad == nil {
			key, err = bare, format.Check(bare)
		}
	}
	if err != nil || lines[0] == profile.QuoteKey(key) {
		return key, nil, err
	}
	return key, &godwit.KeptHeader{Name: idempotency.Header, Value: lines[0]}, nil
}

// bind ties a signed attempt to one key. If the signature does not cover the key, an attacker could otherwise send a
// captured attempt again under another key while its timestamp is accepted (EDS-SEC-THR-2).
func (x *exchange) bind(key string) error {
	body := sha256.Sum256(x.body)
	of := sha256.Sum256([]byte(key))
	seen, err := x.remember("once", x.proof.Once+"\x00"+hex.EncodeToString(body[:]), of)
	switch {
	case err != nil:
		return fmt.Errorf("remember attempt: %w", err) // fail closed
	case seen != nil && seen.Fingerprint != of:
		return x.notAuthentic(string(receiver.ReasonReplayed), "the request was seen before under another key")
	}
	return nil
}

// ViaHeader lists the sources that a delivery passed, first to last, so that a source can reject a delivery that it
// forwarded itself. Keys do not reveal such a loop: behind a relay each turn has another producer.
const ViaHeader = "Godwit-Via"

// via returns the field to forward, with this source added.
func (x *exchange) via() (godwit.KeptHeader, error) {
	var passed []string
	for part := range strings.SplitSeq(strings.Join(x.r.Header[ViaHeader], ","), ",") {
		if id, err := godwit.ParseSourceID(strings.TrimSpace(part)); err == nil {
			passed = append(passed, id.String())
		}
	}
	own := x.src.ID.String()
	if slices.Contains(passed, own) || len(passed) >= godwit.MaxHops {
		return godwit.KeptHeader{}, problem.RelayLoop.With("the delivery has come by %d sources, of which this may be one", len(passed))
	}
	return godwit.KeptHeader{Name: ViaHeader, Value: strings.Join(append(passed, own), ", ")}, nil
}
