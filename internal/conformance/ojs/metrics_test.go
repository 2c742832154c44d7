package ojs

import (
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// scrape reads the samples whose name begins so: by name and labels.
func scrape(t testing.TB, r *rig, prefix string) map[string]float64 {
	t.Helper()
	samples := map[string]float64{}
	resp := r.Must(apptest.Call{Path: "/metrics"}, nil)
	for line := range strings.Lines(string(resp.Body)) {
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		name, value, _ := cutLast(strings.TrimSpace(line), " ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("sample %q: %v", line, err)
		}
		samples[name] = n
	}
	return samples
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
