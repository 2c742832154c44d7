package conformance

import "strings"

// mentions reports whether a text holds one of the phrases, whatever its case.
func mentions(text string, phrases ...string) bool {
	text = strings.ToLower(text)
	for _, p := range phrases {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
