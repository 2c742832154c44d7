package receiver

import (
	"bytes"
	"context"
	"crypto/sha1" // Twilio's scheme has no other; SHA-1 is sound within an HMAC
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
)

// Twilio is the scheme of Twilio's webhooks: X-Twilio-Signature is an HMAC-SHA1 over the full public address and, for a form,
// its parameters in order of their names. JSON is covered by its digest in the query parameter bodySHA256. They are
// deduplicated by I-Twilio-Idempotency-Token, else by the message or call and its status, else by their bytes.
//
// The address must be the one that Twilio called: set [Options.PublicOrigin] behind a proxy. No time is signed.
type Twilio struct {
	// Secrets lists the accepted auth tokens of the account. Required.
	Secrets []string
	// Principal names the sender. Deduplication is per principal. Defaults to twilio.
	Principal string
}

// Profile prepares the scheme.
func (s Twilio) Profile() (Profile, error) {
	keys, err := textKeys("twilio", s.Secrets, sha1.New)
	if err != nil {
		return Profile{}, err
	}
	proof := Proof{Principal: ownerOr(s.Principal, "twilio")}
	return Profile{
		Name: "twilio", SignsTarget: true, KeySource: "the header I-Twilio-Idempotency-Token; else the message or call and its status",
		Authenticate: func(_ context.Context, m *Message, _ Check) (Proof, error) {
			return proof, verifyTwilio(keys, m)
		},
		Identify: identifyTwilio,
	}, nil
}

func verifyTwilio(keys []macKey, m *Message) error {
	header := m.Field("X-Twilio-Signature")
	if header == "" {
		return refuse(ReasonMissing, "X-Twilio-Signature is missing")
	}
	mac := decodeBase64(header)
	if mac == nil {
		return errMismatch
	}
	var params []byte
	if isForm(m) {
		params = sortedForm(m.Body)
	} else if err := checkBodyHash(m); err != nil {
		return err
	}
	good := false
	for _, spelling := range twilioSpellings(m.URL) {
		good = anyMAC(keys, [][]byte{mac}, []byte(spelling), params) || good
	}
	if !good {
		return errMismatch
	}
	return nil
}

func isForm(m *Message) bool {
	return mediaType(m.Field("Content-Type")) == "application/x-www-form-urlencoded"
}

// checkBodyHash checks a body that is not a form: its digest is in the address, which is signed.
func checkBodyHash(m *Message) error {
	_, query, _ := strings.Cut(m.URL, "?")
	claimed, err := hex.DecodeString(formValue(parseForm([]byte(query)), "bodySHA256"))
	sum := sha256.Sum256(m.Body)
	if err != nil || subtle.ConstantTimeCompare(claimed, sum[:]) != 1 {
		return refuse(ReasonDigest, "bodySHA256 does not fit the body")
	}
	return nil
}

// twilioSpellings are the address with and without its port: Twilio signs some of them with it.
func twilioSpellings(uri string) []string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return []string{uri}
	}
	host, tail := rest, ""
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		host, tail = rest[:end], rest[end:]
	}
	port := "80"
	if scheme == "https" {
		port = "443"
	}
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		host, port = host[:colon], host[colon+1:]
	}
	spellings := []string{uri, scheme + "://" + host + tail, scheme + "://" + host + ":" + port + tail}
	slices.Sort(spellings)
	return slices.Compact(spellings)
}

type formPair struct{ name, value string }

// parseForm reads a form as browsers do: an invalid escape stays as it is. It refuses nothing, since the signature decides.
func parseForm(body []byte) []formPair {
	var pairs []formPair
	for part := range bytes.SplitSeq(body, []byte("&")) {
		if len(part) == 0 {
			continue
		}
		name, value, _ := strings.Cut(string(part), "=")
		pairs = append(pairs, formPair{unescapeForm(name), unescapeForm(value)})
	}
	return pairs
}

func unescapeForm(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return strings.ReplaceAll(text, "+", " ")
}

func formValue(pairs []formPair, name string) string {
	for _, p := range pairs {
		if p.name == name {
			return p.value
		}
	}
	return ""
}

// sortedForm is names and values in their order, each pair once.
func sortedForm(body []byte) []byte {
	pairs := parseForm(body)
	slices.SortFunc(pairs, func(a, b formPair) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.value, b.value)
	})
	var out []byte
	for _, p := range slices.Compact(pairs) {
		out = append(append(out, p.name...), p.value...)
	}
	return out
}

func identifyTwilio(m *Message, _ *Proof, _ KeyPolicy) (Identity, error) {
	var form []formPair
	if isForm(m) {
		form = parseForm(m.Body)
	}
	first := func(names ...string) string {
		for _, name := range names {
			if value := formValue(form, name); value != "" {
				return value
			}
		}
		return ""
	}
	subject, status := first("MessageSid", "CallSid"), first("MessageStatus", "CallStatus", "SmsStatus")
	key := m.Field("I-Twilio-Idempotency-Token")
	switch {
	case key != "":
	case subject != "":
		key = subject + ":" + status
	default:
		key = bodyKey(m.Body)
	}
	key, err := boundedKey(key, "I-Twilio-Idempotency-Token")
	if subject == "" {
		subject = key
	}
	return Identity{Key: key, EventID: subject, EventType: status}, err
}
