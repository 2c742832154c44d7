package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"
)

// macKey is a shared secret with prepared state. HMACs are compared in constant time.
type macKey struct{ macs *sync.Pool }

func newMACKey(algorithm func() hash.Hash, secret []byte) macKey {
	own := append([]byte(nil), secret...)
	return macKey{&sync.Pool{New: func() any { return hmac.New(algorithm, own) }}}
}

// appendSum appends the MAC of the parts, one after the other.
func (k macKey) appendSum(dst []byte, parts ...[]byte) []byte {
	mac := k.macs.Get().(hash.Hash)
	mac.Reset()
	for _, part := range parts {
		mac.Write(part)
	}
	dst = mac.Sum(dst)
	k.macs.Put(mac)
	return dst
}

// textKeys makes keys of the secrets' whole text, prefix included (CCW-SIG-3).
func textKeys(scheme string, secrets []string, algorithm func() hash.Hash) ([]macKey, error) {
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%s: no secret", scheme)
	}
	keys := make([]macKey, len(secrets))
	for i, secret := range secrets {
		if secret == "" {
			return nil, fmt.Errorf("%s: secret %d is empty", scheme, i+1)
		}
		keys[i] = newMACKey(algorithm, []byte(secret))
	}
	return keys, nil
}

// anyMAC reports whether any of the keys made any of the MACs. It tries all, so that its duration reveals nothing.
func anyMAC(keys []macKey, macs [][]byte, parts ...[]byte) bool {
	good := false
	var sum [64]byte
	for _, key := range keys {
		want := key.appendSum(sum[:0], parts...)
		for _, mac := range macs {
			if hmac.Equal(want, mac) {
				good = true
			}
		}
	}
	return good
}

// maxSignatures limits the entries of one header that are tried.
const maxSignatures = 16

// hexMACs reads the entries of a comma list that have the prefix. An entry that is not the hex of a SHA-256 matches nothing and
// is dropped (CCW-SIG-12). known reports whether any entry had the prefix.
func hexMACs(header, prefix string) (macs [][]byte, known bool) {
	for entry := range strings.SplitSeq(header, ",") {
		digits, ok := strings.CutPrefix(strings.TrimSpace(entry), prefix)
		if !ok {
			continue
		}
		known = true
		if len(digits) != hex.EncodedLen(sha256.Size) || len(macs) == maxSignatures {
			continue
		}
		if mac, err := hex.DecodeString(digits); err == nil {
			macs = append(macs, mac)
		}
	}
	return macs, known
}

var base64URL = strings.NewReplacer("-", "+", "_", "/")

// decodeBase64 reads base64 in either alphabet, padded or not: secrets are shown in all these forms. It returns nil for other
// text.
func decodeBase64(text string) []byte {
	if strings.ContainsAny(text, "\r\n") {
		return nil // Go's decoder would skip line breaks
	}
	bytes, err := base64.RawStdEncoding.DecodeString(base64URL.Replace(strings.TrimRight(text, "=")))
	if err != nil {
		return nil
	}
	return bytes
}

// unixSeconds reads digits only, so that 12x is not 12 (CCW-SIG-9).
func unixSeconds(text string) (time.Time, error) {
	if text == "" || len(text) > 15 {
		return time.Time{}, errTimestamp
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return time.Time{}, errTimestamp
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, errTimestamp
	}
	return time.Unix(seconds, 0), nil
}

// boundedKey accepts a key that is not a structured field. It comes from outside and is stored, so it must be printable and
// short.
func boundedKey(value, source string) (string, error) {
	if value == "" {
		return "", &DeliveryError{CodeKeyMissing, source + " is missing"}
	}
	if len(value) > 255 || !printable(value) {
		return "", &DeliveryError{CodeKeyMalformed, source + " must be 1 to 255 printable ASCII characters"}
	}
	return value, nil
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// bodyKey is the key of deliveries without an id: equal bytes are the same delivery.
func bodyKey(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// positive reads a count; 0 if the text is not one.
func positive(text string) int {
	if text == "" || text[0] == '+' {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// ownerOr is the configured principal, or the scheme's name.
func ownerOr(principal, name string) string {
	if principal == "" {
		return name
	}
	return principal
}

// jsonAnswer makes an answer of a value that always encodes.
func jsonAnswer(status int, value any) Answer {
	body, err := json.Marshal(value)
	if err != nil {
		body = []byte("{}")
	}
	return Answer{Status: status, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: body}
}
