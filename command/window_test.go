package command

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestWindowText(t *testing.T) {
	for text, want := range map[string]struct {
		window Window
		back   string
	}{
		"10m":    {Window(10 * time.Minute), "10m"},
		"24h":    {Window(24 * time.Hour), "24h"},
		"1d":     {Window(24 * time.Hour), "24h"},
		"30d":    {Window(30 * day), "30d"},
		"720h":   {Window(30 * day), "30d"},
		"25h":    {Window(25 * time.Hour), "25h"},
		"1h30m":  {Window(90 * time.Minute), "90m"},
		"1500ms": {Window(1500 * time.Millisecond), "1.5s"},
		"never":  {Forever, "never"},
		"36525d": {Window(longest), "36525d"},
	} {
		w, err := ParseWindow(text)
		if err != nil || w != want.window || w.String() != want.back {
			t.Errorf("%s: %v %q %v, want %v %q", text, time.Duration(w), w, err, time.Duration(want.window), want.back)
		}
		if again, err := ParseWindow(w.String()); err != nil || again != w {
			t.Errorf("%s: written as %s, which is read as %v %v", text, w, again, err)
		}
	}
	for _, text := range []string{"", "0", "0s", "-1h", "999ms", "10", "d", "-1d", "1.5d", "36526d", "18446744073709551615d", "4294967297d",
		"1000000h", "forever", "Never", " 10m", "10m "} {
		if w, err := ParseWindow(text); err == nil {
			t.Errorf("%q is read as %v", text, w)
		}
	}
}

func TestWindowJSON(t *testing.T) {
	var d Declaration
	if err := json.Unmarshal([]byte(`{"ttl":"30d"}`), &d); err != nil || d.Window != Window(30*day) {
		t.Fatal(d.Window, err)
	}
	if text, err := json.Marshal(d); err != nil || !strings.Contains(string(text), `"ttl":"30d"`) {
		t.Errorf("%s %v", text, err)
	}
	if text, err := json.Marshal(Declaration{}); err != nil || strings.Contains(string(text), "ttl") {
		t.Errorf("%s %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"ttl":3600}`), &d); err == nil {
		t.Error("a number is taken for a window")
	}
}

func TestWindowEnd(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if end := Window(day).End(begin); !end.Equal(begin.Add(24 * time.Hour)) {
		t.Error(end)
	}
	if end := Forever.End(begin); !end.IsZero() {
		t.Error(end)
	}
	if Forever.Duration() != math.MaxInt64 || Window(day).Duration() != 24*time.Hour {
		t.Error(Forever.Duration(), Window(day).Duration())
	}
}
