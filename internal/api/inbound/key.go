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

// key is the upstream's, unchanged. Only a source that adopts may come without: then we are the Producer, and the key is
// made of the upstream's own delivery id (decision 15, EDS T-31). The field is there when its bytes say more than the key
// does, and then go on as they came.
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

// sentKey reads the Idempotency-Key. Parameters do not count, and stay with it (IKH K-2); a key without quotes counts where
// the source says so (EDS T-1).
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

// bind lets one signed attempt stand for one key. Where the signature does not cover the key, an attacker who has captured an
// attempt could send it again under another one while its time is good (EDS-SEC-THR-2).
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

// ViaHeader names the sources that a delivery has come by, the first one first, so that none takes what it has sent on
// itself. Keys do not show it: behind a relay they count for another producer at every turn.
const ViaHeader = "Godwit-Via"

// via is what goes on in that field, with this source added.
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
