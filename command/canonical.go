package command

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

// Canonical is the canonical form of a JSON text: RFC 8785 over its values with all strings and names in normalisation form C.
// It refuses the same JSON texts as ParseEnvelope.
func Canonical(text []byte) ([]byte, error) {
	v, err := document(text)
	if err != nil {
		return nil, fmt.Errorf("canonicalise: %w", err)
	}
	return canonical(v)
}

// canonical encodes a value that document returned.
func canonical(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("canonicalise: %w", err)
	}
	text, err = jcs.Transform(text)
	if err != nil {
		return nil, fmt.Errorf("canonicalise: %w", err)
	}
	return text, nil
}

// exactNumber returns a number in canonical form, and whether that form has the same value. The canonical form is that of
// the nearest double: 9007199254740993 would become 9007199254740992, which is another number.
func exactNumber(text string) (json.Number, bool) {
	const most = 400 // no double has more digits when written out
	if len(text) > most {
		return "", false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "", false
	}
	form, err := jcs.NumberToJSON(f)
	if err != nil {
		return "", false
	}
	if form != text && decimalOf(form) != decimalOf(text) {
		return "", false
	}
	return json.Number(form), true
}

// A decimal is the value of a number: digits without zeros at either end, times ten to the power.
type decimal struct {
	negative bool
	digits   string
	power    int
}

// decimalOf reads a JSON number. Zero, of either sign, is the zero decimal.
func decimalOf(text string) decimal {
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa, power, scientific := strings.Cut(strings.ToLower(text), "e")
	if scientific {
		n, err := strconv.Atoi(power)
		if err != nil {
			n = 1 << 30 // beyond every double, so that only zero compares equal
		}
		d.power = n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.power -= len(fraction)
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	d.power += len(digits) - len(d.digits)
	if d.digits == "" {
		return decimal{}
	}
	return d
}
