package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"

	"github.com/godwit-hq/godwit/internal/jsonschema"
)

// MaxEnvelope is the maximum size in bytes of an envelope, and of its args or its options.
const MaxEnvelope = 64 << 10

const maxName = 256 // bytes of an id or a target

var (
	wordPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	// timePattern is the exact form of RFC 3339; time.Parse accepts more.
	timePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$`)
	kindPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
)

// ParseEnvelope reads a command from the wire. It is strict, because a text with two readings could give two commands one
// key, or one command two keys. It accepts one JSON object in UTF-8 of at most MaxEnvelope bytes, without unknown or
// duplicate members (also within args and options), unpaired surrogates, or numbers that their canonical form would round.
//
// Strings are returned in normalisation form C. The error is a *Refusal with the code Malformed; its field is the JSON
// pointer of the member that is wrong.
func ParseEnvelope(body []byte) (*Envelope, error) {
	if len(body) > MaxEnvelope {
		return nil, malformed("", fmt.Sprintf("has more than %d bytes", MaxEnvelope))
	}
	v, parts, err := documentParts(body)
	if err != nil {
		return nil, refuseFault(Malformed, "", err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, malformed("", "must be a JSON object")
	}
	var e Envelope
	if err := e.fill(object, parts); err != nil {
		return nil, err
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return &e, nil
}

// fill sets the members. A null member counts as absent.
func (e *Envelope) fill(object map[string]any, parts map[string]json.RawMessage) error {
	var intent any
	var issued string
	err := take("", object, map[string]any{
		"command_id": &e.CommandID, "tenant_id": &e.TenantID, "actor_id": &e.ActorID, "effective_actor_id": &e.EffectiveActorID,
		"intent": &intent, "args": &e.Args, "command_kind": &e.Kind, "options": &e.Options, "issued_at": &issued,
		"message_id": &e.MessageID, "channel": &e.Channel, "nonce": &e.Nonce, "idempotency_key": &e.Key,
	}, parts)
	if err != nil {
		return err
	}
	switch intent := intent.(type) {
	case nil:
	case map[string]any:
		err = take("/intent", intent, map[string]any{
			"entity": &e.Intent.Entity, "action": &e.Intent.Action, "target": &e.Intent.Target,
		}, nil)
	default:
		err = malformed("/intent", "must be an object")
	}
	if err != nil || issued == "" {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, issued)
	if err != nil || !timePattern.MatchString(issued) {
		return malformed("/issued_at", "must be a time as in RFC 3339: 2026-03-01T12:00:00Z")
	}
	e.IssuedAt = t.UTC()
	return nil
}

// take stores each member in its target, and refuses unknown members.
func take(at string, object, into map[string]any, parts map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		where, known := into[name]
		if !known {
			return malformed(at+jsonschema.Pointer(name), "is not a member that is known")
		}
		v := object[name]
		switch where := where.(type) {
		case *any:
			*where = v
		case *json.RawMessage:
			if _, ok := v.(map[string]any); !ok {
				return malformed(at+jsonschema.Pointer(name), "must be an object, or absent")
			}
			*where = slices.Clone(parts[name])
		case *string:
			text, ok := v.(string)
			if !ok && v != nil {
				return malformed(at+jsonschema.Pointer(name), "must be a string")
			}
			*where = text
		}
	}
	return nil
}

// Validate checks the members as ParseEnvelope does, for envelopes made by code. It does not check args and options;
// Derive does.
func (e *Envelope) Validate() error {
	switch {
	case e.CommandID == "":
		return malformed("/command_id", "is required")
	case !isCommandID(e.CommandID):
		return malformed("/command_id", `must be "cmd_" and a UUID of version 7 in lower case`)
	case e.IssuedAt.IsZero():
		return malformed("/issued_at", "is required")
	case e.IssuedAt.Year() < 1 || e.IssuedAt.Year() > 9999:
		return malformed("/issued_at", "must be in a year of four digits")
	case len(e.Args) > MaxEnvelope:
		return malformed("/args", fmt.Sprintf("has more than %d bytes", MaxEnvelope))
	case len(e.Options) > MaxEnvelope:
		return malformed("/options", fmt.Sprintf("has more than %d bytes", MaxEnvelope))
	case e.Kind != "" && !kindPattern.MatchString(e.Kind):
		return malformed("/command_kind", "must be letters, digits and _, at most 64, the first a letter")
	}
	for _, m := range []struct {
		at, value string
		required  bool
		check     func(string) string
	}{
		// Key inputs first: a missing one is refused before anything is reserved (IDS-KEY-12).
		{"/tenant_id", e.TenantID, true, checkIdentity},
		{"/actor_id", e.ActorID, true, checkIdentity},
		{"/intent/entity", e.Intent.Entity, true, checkWord},
		{"/intent/action", e.Intent.Action, true, checkWord},
		{"/intent/target", e.Intent.Target, false, checkText},
		{"/effective_actor_id", e.EffectiveActorID, false, checkIdentity},
		{"/message_id", e.MessageID, false, checkText},
		{"/channel", e.Channel, false, checkText},
		{"/nonce", e.Nonce, false, checkText},
		{"/idempotency_key", e.Key, false, checkText},
	} {
		if m.value == "" && !m.required {
			continue
		}
		if m.value == "" {
			return malformed(m.at, "is required")
		}
		if detail := m.check(m.value); detail != "" {
			return malformed(m.at, detail)
		}
	}
	return nil
}

func checkText(text string) string {
	switch {
	case len(text) > maxName:
		return fmt.Sprintf("must have at most %d bytes", maxName)
	case !utf8.ValidString(text):
		return "must be UTF-8"
	case strings.ContainsFunc(text, unicode.IsControl):
		return "must not hold control characters"
	}
	return ""
}

// checkIdentity checks ids that are compared with the authenticated caller. The key holds them in normalisation form C: if
// other spellings were allowed, two actors could have the same key.
func checkIdentity(text string) string {
	if detail := checkText(text); detail != "" {
		return detail
	}
	if !norm.NFC.IsNormalString(text) {
		return "must be in Unicode normalisation form C"
	}
	return ""
}

func checkWord(text string) string {
	if !wordPattern.MatchString(text) {
		return "must be lower-case letters, digits and _, at most 64, the first a letter"
	}
	return ""
}

func isCommandID(text string) bool {
	rest, ok := strings.CutPrefix(text, "cmd_")
	if !ok {
		return false
	}
	id, err := uuid.Parse(rest)
	return err == nil && id.Version() == 7 && id.Variant() == uuid.RFC4122 && id.String() == rest
}

func malformed(at, detail string) error { return refuse(Malformed, at, detail) }

func refuse(code RefusalCode, at, detail string) error {
	subject := at
	if at == "" {
		subject = "the envelope"
	}
	return &Refusal{Code: code, Field: at, Detail: subject + " " + detail}
}

// refuseFault refuses a fault that document found within the member at the given place.
func refuseFault(code RefusalCode, at string, err error) error {
	if f, ok := err.(*fault); ok {
		return refuse(code, at+f.pointer, f.detail)
	}
	return refuse(code, at, "cannot be read as JSON")
}
