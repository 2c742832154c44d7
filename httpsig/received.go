package httpsig

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/dunglas/httpsfv"
)

const (
	// maxSignatures bounds the signatures that are tried on one message. A message normally carries one for each key and
	// hop.
	maxSignatures = 16
	// maxFieldBytes bounds each of the two signature fields before it is parsed.
	maxFieldBytes = 32 << 10
)

// received is a signature of a message, before verification.
type received struct {
	label     string
	input     httpsfv.Member
	value     httpsfv.Member // nil if Signature has no member of that label
	parsed    bool           // the other members are set
	signature []byte
	params    string // the signature parameters, serialised: the last value of the base

	components []component
	keyID      string
	alg        string
	nonce      string
	tag        string
	created    time.Time
	expires    time.Time
	hasCreated bool
	hasExpires bool
	hasAlg     bool
}

// readSignatures returns the signatures of a message in their order; with a tag, only those that carry it. A signature that
// is not in canonical form is parsed later, so that a malformed one, perhaps from another hop, does not spoil the others.
func readSignatures(header http.Header, tag string, known []component) ([]received, error) {
	if len(header[inputField]) == 0 && len(header[signatureField]) == 0 {
		return nil, &Error{Reason: ReasonMissing}
	}
	signatures, ok := canonicalSignatures(header, known)
	if !ok {
		var err error
		if signatures, err = parsedSignatures(header); err != nil {
			return nil, err
		}
	}
	if tag != "" {
		signatures = slices.DeleteFunc(signatures, func(s received) bool { return !s.hasTag(tag) })
	}
	if len(signatures) == 0 {
		return nil, &Error{Reason: ReasonMissing}
	}
	return signatures, nil
}

// parsedSignatures reads both fields in any valid form.
func parsedSignatures(header http.Header) ([]received, error) {
	inputs, err := readDictionary(header, inputField)
	if err != nil {
		return nil, err
	}
	values, err := readDictionary(header, signatureField)
	if err != nil {
		return nil, err
	}
	if len(inputs.Names()) > maxSignatures {
		return nil, malformed(inputField, fmt.Sprintf("more than %d signatures", maxSignatures))
	}
	var signatures []received
	for _, label := range inputs.Names() {
		s := received{label: label}
		s.input, _ = inputs.Get(label)
		s.value, _ = values.Get(label)
		signatures = append(signatures, s)
	}
	return signatures, nil
}

func readDictionary(header http.Header, field string) (*httpsfv.Dictionary, error) {
	size := 0
	for _, value := range header[field] {
		size += len(value)
	}
	if size > maxFieldBytes {
		return nil, malformed(field, fmt.Sprintf("longer than %d bytes", maxFieldBytes))
	}
	parsed, err := httpsfv.UnmarshalDictionary(header[field])
	if err != nil {
		return nil, &Error{Reason: ReasonMalformed, Component: field, cause: err}
	}
	return parsed, nil
}

func (s *received) hasTag(tag string) bool {
	list, ok := s.input.(httpsfv.InnerList)
	if !ok {
		return s.parsed && s.tag == tag
	}
	value, _ := list.Params.Get("tag")
	return value == tag
}

func (s *received) parse() error {
	if s.parsed {
		return nil
	}
	list, ok := s.input.(httpsfv.InnerList)
	if !ok {
		return malformed(inputField, "member is not an inner list")
	}
	value, ok := s.value.(httpsfv.Item)
	if !ok {
		return malformed(signatureField, "no such member")
	}
	if s.signature, ok = value.Value.([]byte); !ok {
		return malformed(signatureField, "member is not a byte sequence")
	}
	var err error
	if s.components, err = parseCovered(list.Items); err != nil {
		return err
	}
	if s.params, err = httpsfv.Marshal(list); err != nil {
		return &Error{Reason: ReasonMalformed, Component: inputField, cause: err}
	}
	for _, name := range list.Params.Names() {
		value, _ := list.Params.Get(name)
		if err := s.setParam(name, value); err != nil {
			return err
		}
	}
	return nil
}

// setParam stores one signature parameter (RFC 9421, section 2.3). Parameters that the RFC does not define are signed like
// the others and ignored here.
func (s *received) setParam(name string, value any) error {
	ok := true
	switch name {
	case "created":
		s.created, ok = asTime(value)
		s.hasCreated = true
	case "expires":
		s.expires, ok = asTime(value)
		s.hasExpires = true
	case "keyid":
		s.keyID, ok = value.(string)
	case "alg":
		s.alg, ok = value.(string)
		s.hasAlg = true
	case "nonce":
		s.nonce, ok = value.(string)
	case "tag":
		s.tag, ok = value.(string)
	}
	if !ok {
		return malformed(name, "parameter has the wrong type")
	}
	return nil
}

func asTime(value any) (time.Time, bool) {
	seconds, ok := value.(int64)
	return time.Unix(seconds, 0), ok
}

// checkDigest compares the body with Content-Digest if the signature covers that field. If it covers single members only,
// checkDigest compares those.
func (s *received) checkDigest(header http.Header, body []byte) error {
	var members []string
	for _, c := range s.components {
		switch {
		case c.name != "content-digest" || c.tr || c.req:
		case !c.hasKey:
			return verifyContentDigest(header, body, nil)
		default:
			members = append(members, c.value)
		}
	}
	if members == nil {
		return nil
	}
	return verifyContentDigest(header, body, members)
}

func (s *received) verified(algorithm Algorithm) Verified {
	v := Verified{
		Label: s.label, KeyID: s.keyID, Algorithm: algorithm,
		Created: s.created, Expires: s.expires, Nonce: s.nonce, Tag: s.tag,
		Components: make([]string, len(s.components)),
	}
	for i, c := range s.components {
		v.Components[i] = c.id
	}
	return v
}
