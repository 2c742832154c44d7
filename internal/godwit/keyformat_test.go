package godwit

import (
	"regexp"
	"testing"

	"github.com/godwit-hq/godwit/internal/trace"
)

// Generated keys follow the formats that all receivers of an event have published.
func TestKeysKeepToTheReceiversFormats(t *testing.T) {
	trace.Covers(t, "IKH-RSP-1", "IKH-UNQ-5")
	const uuid = `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`
	for name, c := range map[string]struct {
		formats []KeyFormat
		want    string
	}{
		"nobody in particular":            {nil, uuid},
		"a receiver that says nothing":    {[]KeyFormat{{}}, uuid},
		"a UUID fits":                     {[]KeyFormat{{Min: 16, Max: 255, Alphabet: KeyPrintable}, {}}, uuid},
		"longer":                          {[]KeyFormat{{Min: 40, Max: 64, Alphabet: KeyPrintable}}, `^[0-9A-Za-z]{40}$`},
		"shorter":                         {[]KeyFormat{{Min: 1, Max: 24, Alphabet: KeyPrintable}}, `^[0-9A-Za-z]{24}$`},
		"letters and digits":              {[]KeyFormat{{Min: 1, Max: 255, Alphabet: KeyAlphanumeric}}, `^[0-9A-Za-z]{32}$`},
		"hex":                             {[]KeyFormat{{Min: 1, Max: 255, Alphabet: KeyHex}}, `^[0-9a-f]{32}$`},
		"both of two":                     {[]KeyFormat{{Min: 1, Max: 50, Alphabet: KeyHex}, {}, {Min: 45, Max: 255, Alphabet: KeyPrintable}}, `^[0-9a-f]{45}$`},
		"never both":                      {[]KeyFormat{{Min: 60, Max: 255, Alphabet: KeyPrintable}, {Min: 1, Max: 50, Alphabet: KeyPrintable}}, uuid},
		"hex in a short field of another": {[]KeyFormat{{Min: 1, Max: 255, Alphabet: KeyHex}, {Min: 1, Max: 25, Alphabet: KeyPrintable}}, uuid},
	} {
		want := regexp.MustCompile(c.want)
		seen := map[string]bool{}
		for range 200 {
			key := NewKey(c.formats...)
			if !want.MatchString(key) || seen[key] {
				t.Errorf("%s: made %q, want another of %s", name, key, want)
				break
			}
			seen[key] = true
		}
	}
}
