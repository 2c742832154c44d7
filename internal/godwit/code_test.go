package godwit

import (
	"errors"
	"strings"
	"testing"
	"time"
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

// A slip of the pen is found without asking a store: 31 of 32 wrong characters make the check fail.
func TestMistypedCodesAreRefused(t *testing.T) {
	const id = "WEB-X2M8KD-Z"
	if code, err := ParseCode(CodeEndpoint, id); err != nil || code != "X2M8KD" {
		t.Fatalf("%q: %v", code, err)
	}
	for _, text := range []string{
		"", "WEB-", "X2M8KD", "WEB-X2M8KD", "WEB-X2M8KD-", "WEB-X2M8KD-ZZ", "WEB-X2M8KDZ", "WEB-X2M8K-Z", "WEB-X2M8KDD-Z", "ACC-X2M8KD-Z",
		"WEB-X2M8K0-Z", "WEB-X2M8KI-Z", "WEB_X2M8KD_Z", "WEB-X2M8KD_Z", "WEB-é2M8K-Z", "sub_019539a4-b68c-7def-8000-112233445566",
	} {
		if code, err := ParseCode(CodeEndpoint, text); !errors.Is(err, ErrBadID) || code != "" {
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

func TestBase32RoundTrip(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	last := ""
	for i := range 1000 {
		id := NewEventID(now.Add(time.Duration(i) * time.Millisecond))
		text := id.Base32()
		if len(text) != 26 || text <= last {
			t.Fatalf("%s behind %s", text, last)
		}
		last = text
		for _, spelt := range []string{text, strings.ToLower(text)} {
			if back, err := ParseEventBase32(spelt); err != nil || back != id {
				t.Fatalf("%s read as %s: %v", spelt, back, err)
			}
		}
	}
	var highest EventID
	for i := range highest {
		highest[i] = 0xff
	}
	if text := highest.Base32(); text != "7"+strings.Repeat("Z", 25) {
		t.Errorf("the highest id is %s", text)
	}
	for _, text := range []string{"", strings.Repeat("0", 26), "8" + strings.Repeat("0", 25), strings.Repeat("1", 25), strings.Repeat("1", 27),
		"I" + strings.Repeat("0", 25), strings.Repeat("0", 25) + "U", strings.Repeat("0", 25) + "-", strings.Repeat("é", 13),
		strings.Repeat("1", 24) + "ſ"} { // upper case of which is an S
		if id, err := ParseEventBase32(text); !errors.Is(err, ErrBadID) || !id.IsZero() {
			t.Errorf("%q read as %s: %v", text, id, err)
		}
	}
}

func FuzzParseBase32(f *testing.F) {
	f.Add("01JMWT9DMCFQQR000H48SM8NB6")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := ParseEventBase32(text); err == nil && !strings.EqualFold(id.Base32(), text) {
			t.Errorf("%q read as %s", text, id.Base32())
		}
	})
}
