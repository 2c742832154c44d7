package search

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNeedle(t *testing.T) {
	for _, c := range []struct {
		text, in string
		at       int
	}{
		{"a", "", -1}, {"a", "a", 0}, {"a", "A", 0}, {"order 4711", `{"note":"Order 4711"}`, 9}, {"4711", "471 4711", 4}, {"aab", "aaab", 1},
		{"zz", "Zz", 0}, {"longer than it", "short", -1}, {"end", "the END", 4}, {"endless", "the end", -1}, {"ü", "Übung ü", 7}, {"Ü", "über Ü", 6}, {"\x00", "a\x00b", 1},
		{"K", "\u212a", -1}, // the Kelvin sign is no ASCII letter
	} {
		if at := newNeedle(c.text).index([]byte(c.in)); at != c.at {
			t.Errorf("%q in %q: %d, want %d", c.text, c.in, at, c.at)
		}
	}
}

// FuzzNeedle compares the search with the standard library's.
func FuzzNeedle(f *testing.F) {
	f.Add("abc", "xABCx")
	f.Add("\xff", "\xfe\xff")
	f.Fuzz(func(t *testing.T, text, in string) {
		if text == "" {
			return
		}
		want := bytes.Index(lowerASCII(in), lowerASCII(text))
		if at := newNeedle(text).index([]byte(in)); at != want {
			t.Errorf("%q in %q: %d, want %d", text, in, at, want)
		}
		if want >= 0 {
			if s := snippet([]byte(in), want, len(text)); !utf8.ValidString(s) || strings.ContainsAny(s, "\n\x00") {
				t.Errorf("snippet %q", s)
			}
		}
	})
}

func TestSnippet(t *testing.T) {
	long := strings.Repeat("ä", 100) + "needle" + strings.Repeat("\n", 100)
	s := snippet([]byte(long), 200, 6)
	if !strings.HasPrefix(s, "…ä") || !strings.HasSuffix(s, " …") || !strings.Contains(s, "äneedle ") || !utf8.ValidString(s) {
		t.Errorf("snippet %q", s)
	}
	if s := snippet([]byte("a\xffb"), 0, 1); s != "a\uFFFDb" {
		t.Errorf("snippet of bytes that are no text: %q", s)
	}
}

func TestChunks(t *testing.T) {
	for n, want := range map[int]int{0: 50, 49: 50, 99: 50, 1250: 1000, 4999: 2500, 1 << 20: 5000} {
		if got := chunkOf(n); got != want {
			t.Errorf("a chunk of up to %d rows has %d, want %d", n, got, want)
		}
	}
}

func BenchmarkNeedle(b *testing.B) {
	body := make([]byte, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	const letters = `{"order":"abcdefghijklmnopqrstuvwxyz0123456789 ","total":`
	for i := range body {
		body[i] = letters[r.IntN(len(letters))]
	}
	n := newNeedle("Order 4711")
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		n.index(body)
	}
}
