package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"golang.org/x/text/unicode/norm"
)

// KeyVersion is the version of the rules that derive keys. A record stores it, so that a change of the rules cannot
// silently execute a command again (IDS-KEY-13).
const KeyVersion = 1

// effectiveActor is the only binding principal that a declaration can name.
const effectiveActor = "effective_actor_id"

// A Derivation holds the values derived from an envelope according to its command's declaration.
//
// # The rules, version 1
//
// The key is the SHA-256, in lower-case hexadecimal digits, of the canonical form of an object with these members and no others
// (IDS-KEY-2, -3, -6):
//
//	actor_id      the envelope's; where the command declares the binding principal effective_actor_id, that member of the
//	              envelope if it has one (IDS-KEY-9)
//	args          the envelope's, normalised; {} when absent (IDS-KEY-12)
//	command_kind  the envelope's; when absent, the declared class
//	intent        an object of action, entity and target; the target is null when absent
//	tenant_id     the envelope's
//
// Everything else stays out: command_id, issued_at, message_id, channel, nonce, options (IDS-KEY-5).
//
// The canonical form is that of RFC 8785 (JCS): UTF-8, members sorted, no white space, numbers as ECMAScript writes them.
// First, all strings and all names are converted to Unicode normalisation form C. Texts with more than one reading are
// refused (see ParseEnvelope), and so is a number that a double cannot represent exactly. Different values therefore never
// become equal (IDS-KEY-4).
//
// Args are normalised by the annotations of the declared JSON Schema, under properties, patternProperties, additionalProperties,
// items, prefixItems, $ref and allOf (IDS-KEY-8), in this order:
//
//  1. A member that is absent gets its "default"; one within another that is absent does not.
//  2. "x-fold" folds strings. "case": NFC(casefold(NFD(s))) with Unicode's full case folding; "space": runs of Unicode's
//     White_Space become one U+0020, those at the ends nothing; "case space": both.
//  3. "x-set": true sorts the items of an array by their canonical form, bytewise, and keeps one of each. Other arrays keep
//     their order.
//  4. The args are held against the schema. What does not fit is refused.
//  5. "x-ephemeral": true leaves a member out; sets are then made sets again.
//
// The fingerprint is "sha256:" and the hexadecimal digits of the SHA-256 of the canonical form of the whole envelope
// without its ephemeral members: the object above and, where they apply, effective_actor_id and options ({} when absent).
// Where a binding principal is declared, that principal is the actor_id and there is no effective_actor_id, so that a
// retry by another actor on its behalf is not a conflict (IDS-STO-15).
type Derivation struct {
	Key         string // 64 hexadecimal digits
	KeyVersion  int
	Fingerprint string          // "sha256:" and 64 hexadecimal digits
	Args        json.RawMessage // normalised and canonical; passed to the handler
	Principal   string          // principal in the key: the actor, or the effective actor
}

// hashFunc is the hash of the key; tests replace it to make keys collide.
type hashFunc func(canonical []byte) [sha256.Size]byte

// Derive derives the key and fingerprint of an envelope by the rules that Derivation lists. If the envelope names a key,
// it must be the derived one (IDS-KEY-1). The error is a *Refusal.
func (c *Registered) Derive(e *Envelope) (*Derivation, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if c.TargetRequired && e.Intent.Target == "" {
		return nil, malformed("/intent/target", "is required of "+c.Name())
	}
	args, err := e.readArgs()
	if err == nil {
		args, err = c.args.normaliseArgs(args)
	}
	if err != nil {
		return nil, err
	}
	options, err := readOptions(e.Options)
	if err != nil {
		return nil, err
	}
	d := &Derivation{KeyVersion: KeyVersion, Principal: c.principal(e)}
	if d.Args, err = canonical(args); err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	if len(d.Args) > MaxEnvelope {
		return nil, malformed("/args", fmt.Sprintf("has more than %d bytes", MaxEnvelope))
	}
	in, err := c.inputs(e, d)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	sum := c.hash(in.object("", ""))
	d.Key = hex.EncodeToString(sum[:])
	if e.Key != "" && e.Key != d.Key {
		return nil, refuse(KeyMismatch, "/idempotency_key", "is not the one of this command, which is "+d.Key)
	}
	actedFor := ""
	if c.BindingPrincipal == "" && e.EffectiveActorID != "" {
		if actedFor, err = canonicalString(e.EffectiveActorID); err != nil {
			return nil, fmt.Errorf("derive fingerprint: %w", err)
		}
	}
	sum = sha256.Sum256(in.object(actedFor, options))
	d.Fingerprint = "sha256:" + hex.EncodeToString(sum[:])
	return d, nil
}

// readArgs reads the args as a document. Absent args are an empty object. The error is a *Refusal.
func (e *Envelope) readArgs() (args any, err error) {
	switch {
	case e.direct != nil && e.direct.args == nil, e.direct == nil && len(e.Args) == 0:
		return map[string]any{}, nil
	case e.direct != nil:
		args, err = documentOf(e.direct.args)
	default:
		args, err = document(e.Args)
	}
	if err != nil {
		return nil, refuseFault(Malformed, "/args", err)
	}
	if _, ok := args.(map[string]any); !ok {
		return nil, malformed("/args", "must be an object, or absent")
	}
	return args, nil
}

// principal returns the principal in the key.
func (c *Registered) principal(e *Envelope) string {
	if c.BindingPrincipal == effectiveActor && e.EffectiveActorID != "" {
		return e.EffectiveActorID
	}
	return e.ActorID
}

// inputs holds the members of the key's object, in canonical form.
type inputs struct{ actor, args, kind, action, entity, target, tenant string }

func (c *Registered) inputs(e *Envelope, d *Derivation) (inputs, error) {
	kind := e.Kind
	if kind == "" {
		kind = string(c.Class)
	}
	in := inputs{args: string(d.Args), target: "null"}
	for _, m := range []struct {
		into *string
		text string
	}{
		{&in.actor, d.Principal}, {&in.kind, kind}, {&in.action, e.Intent.Action}, {&in.entity, e.Intent.Entity},
		{&in.target, e.Intent.Target}, {&in.tenant, e.TenantID},
	} {
		if m.text == "" {
			continue // the target
		}
		var err error
		if *m.into, err = canonicalString(m.text); err != nil {
			return inputs{}, err
		}
	}
	return in, nil
}

// object returns the canonical object of the inputs, and of the fingerprint's further members where they are not empty. It
// joins canonical parts in the order of RFC 8785, which avoids canonicalising the args twice more.
func (in *inputs) object(actedFor, options string) []byte {
	b := make([]byte, 0, 256+len(in.args)+len(options))
	add := func(name, value string) {
		if value != "" {
			b = append(append(append(b, name...), value...), ',')
		}
	}
	b = append(b, '{')
	add(`"actor_id":`, in.actor)
	add(`"args":`, in.args)
	add(`"command_kind":`, in.kind)
	add(`"effective_actor_id":`, actedFor)
	add(`"intent":`, `{"action":`+in.action+`,"entity":`+in.entity+`,"target":`+in.target+`}`)
	add(`"options":`, options)
	add(`"tenant_id":`, in.tenant)
	b[len(b)-1] = '}'
	return b
}

// canonicalString returns a string in normalisation form C and canonical form.
func canonicalString(text string) (string, error) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			form, err := canonical(norm.NFC.String(text))
			return string(form), err
		}
	}
	return `"` + text + `"`, nil
}

// readOptions returns the options in canonical form.
func readOptions(text []byte) (string, error) {
	if len(text) == 0 {
		return "{}", nil
	}
	v, err := document(text)
	if err != nil {
		return "", refuseFault(Malformed, "/options", err)
	}
	if _, ok := v.(map[string]any); !ok {
		return "", malformed("/options", "must be an object, or absent")
	}
	form, err := canonical(v)
	return string(form), err
}

// ProviderKey is the idempotency key that a provider gets with the named call of a command (IDS-SHD-3). It is the same on
// every try and differs for each name. It has 64 hexadecimal digits, so it is valid in a header, quoted or not. A command
// that makes one call may leave the name empty; the provider then gets the command's own key.
func ProviderKey(key, name string) string {
	if name == "" {
		return key
	}
	sum := sha256.Sum256([]byte("provider call\x00" + key + "\x00" + name))
	return hex.EncodeToString(sum[:])
}
