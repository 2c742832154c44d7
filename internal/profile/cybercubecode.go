package profile

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Entities with a public code: the ids by which the CYBERCUBE API and people name them.
const (
	CodeEndpoint = "WEB"
	CodeTenant   = "ACC"
)

const (
	codeAlphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789" // without I, O, 0 and 1, which are easily confused
	codeLength   = 6
)

// NewCode draws a random code. It is short enough to be read over the telephone, so two can be equal; the store keeps codes unique.
func NewCode() string {
	var b [codeLength]byte
	godwit.Random(b[:])
	for i := range b {
		b[i] = codeAlphabet[b[i]%32]
	}
	return string(b[:])
}

// FormatCode renders a public id: WEB-X2M8KD-Z. The last character checks the others (CCW-API-4).
func FormatCode(entity, code string) string {
	return entity + "-" + code + "-" + string(checkCharacter(entity, code))
}

func checkCharacter(entity, code string) byte {
	sum := sha256.Sum256([]byte(entity + "|" + code))
	return codeAlphabet[sum[0]%32]
}

// ParseCode reads a public id of an entity and verifies its check character, so that a mistyped id is refused without a look
// into the store (CCW-API-5). It ignores case and surrounding space.
func ParseCode(entity, text string) (string, error) {
	text = strings.ToUpper(strings.TrimSpace(text))
	code, ok := strings.CutPrefix(text, entity+"-")
	if !ok || len(code) != codeLength+2 || code[codeLength] != '-' {
		return "", fmt.Errorf("%w: want the form %s-XXXXXX-X", godwit.ErrBadID, entity)
	}
	code, check := code[:codeLength], code[codeLength+1]
	for i := range len(code) {
		if strings.IndexByte(codeAlphabet, code[i]) < 0 {
			return "", fmt.Errorf("%w: want the form %s-XXXXXX-X", godwit.ErrBadID, entity)
		}
	}
	if check != checkCharacter(entity, code) {
		return "", fmt.Errorf("%w: its check character does not fit", godwit.ErrBadID)
	}
	return code, nil
}
