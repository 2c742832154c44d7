package httpsig

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"slices"

	"github.com/dunglas/httpsfv"
)

// ContentDigest returns the value of the Content-Digest field for a body:
// "sha-256=:…:" (RFC 9530, section 2).
func ContentDigest(body []byte) string {
	field := contentDigest(body)
	return string(field[:])
}

const digestPrefix = "sha-256=:"

func contentDigest(body []byte) (field [len(digestPrefix) + 44 + 1]byte) {
	sum := sha256.Sum256(body)
	copy(field[:], digestPrefix)
	base64.StdEncoding.Encode(field[len(digestPrefix):], sum[:])
	field[len(field)-1] = ':'
	return field
}

// VerifyContentDigest checks a message's Content-Digest against its body. The field must hold a sha-256 or sha-512 digest,
// and every digest of these two algorithms must match. Other registered algorithms are broken or mere checksums; they are
// ignored. The error is an [*Error].
func VerifyContentDigest(header http.Header, body []byte) error {
	return verifyContentDigest(header, body, nil)
}

// verifyContentDigest checks only the algorithms in only, or all of them if only is nil. A signature may cover single
// members of the field; then only these members are checked.
func verifyContentDigest(header http.Header, body []byte, only []string) error {
	const component = `"content-digest"`
	values := header["Content-Digest"]
	if len(values) == 0 {
		return missingComponent(component, "not in the message")
	}
	if only == nil && len(values) == 1 {
		if field := contentDigest(body); string(field[:]) == values[0] {
			return nil // the form that senders write; the parser handles every other form
		}
	}
	digests, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return &Error{Reason: ReasonMalformed, Component: component, cause: err}
	}
	known := 0
	for _, algorithm := range digests.Names() {
		sum, ok := digestOf(algorithm, body)
		if !ok || only != nil && !slices.Contains(only, algorithm) {
			continue
		}
		member, _ := digests.Get(algorithm)
		item, _ := member.(httpsfv.Item)
		got, ok := item.Value.([]byte)
		if !ok {
			return malformed(component, algorithm+" is not a byte sequence")
		}
		if subtle.ConstantTimeCompare(got, sum) != 1 {
			return &Error{Reason: ReasonDigestMismatch, Component: component, detail: algorithm + " differs from the body's"}
		}
		known++
	}
	if known == 0 {
		return &Error{Reason: ReasonDigestMismatch, Component: component, detail: "no sha-256 or sha-512 digest"}
	}
	return nil
}

func digestOf(algorithm string, body []byte) ([]byte, bool) {
	switch algorithm {
	case "sha-256":
		sum := sha256.Sum256(body)
		return sum[:], true
	case "sha-512":
		sum := sha512.Sum512(body)
		return sum[:], true
	}
	return nil, false
}
