package profile

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestCodesCheckThemselves(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		code := NewCode()
		id := FormatCode(CodeEndpoint, code)
		for _, text := range []string{id, strings.ToLower(id), "  " + id + "\n"} {
			if got, err := ParseCode(CodeEndpoint, text); err != nil || got != code {
				t.Fatalf("%q read as %q: %v", text, got, err)
			}
		}
		seen[code] = true
	}
	if len(seen) < 990 {
		t.Errorf("1000 codes, %d distinct", len(seen))
	}
}

// A mistyped code is found without a look into the store: 31 of 32 check characters do not fit.
func TestMistypedCodesAreRefused(t *testing.T) {
	const id = "WEB-X2M8KD-Z"
	if code, err := ParseCode(CodeEndpoint, id); err != nil || code != "X2M8KD" {
		t.Fatalf("%q: %v", code, err)
	}
	for _, text := range []string{
		"", "WEB-", "X2M8KD", "WEB-X2M8KD", "WEB-X2M8KD-", "WEB-X2M8KD-ZZ", "WEB-X2M8KDZ", "WEB-X2M8K-Z", "WEB-X2M8KDD-Z", "ACC-X2M8KD-Z",
		"WEB-X2M8K0-Z", "WEB-X2M8KI-Z", "WEB_X2M8KD_Z", "WEB-X2M8KD_Z", "WEB-é2M8K-Z", "sub_019539a4-b68c-7def-8000-112233445566",
	} {
		if code, err := ParseCode(CodeEndpoint, text); !errors.Is(err, godwit.ErrBadID) || code != "" {
			t.Errorf("%q read as %q: %v", text, code, err)
		}
	}
	wrong := 0
	for _, c := range []byte(codeAlphabet) {
		if _, err := ParseCode(CodeEndpoint, "WEB-X2M8KD-"+string(c)); err != nil {
			wrong++
		}
	}
	if wrong != len(codeAlphabet)-1 {
		t.Errorf("%d of %d check characters are refused", wrong, len(codeAlphabet))
	}
}

func FuzzParseCode(f *testing.F) {
	f.Add("WEB-X2M8KD-Z")
	f.Add("web-é2m8k-\xff")
	f.Fuzz(func(t *testing.T, text string) {
		if code, err := ParseCode(CodeEndpoint, text); err == nil && !strings.EqualFold(FormatCode(CodeEndpoint, code), strings.TrimSpace(text)) {
			t.Errorf("%q read as %q", text, code)
		}
	})
}
