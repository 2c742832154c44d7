package godwit

import (
	"errors"
	"strings"
	"testing"
	"time"
)

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
		strings.Repeat("1", 24) + "ſ"} { // its upper case is an S
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
