package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const maxDepth = 64 // levels of nested objects and lists

// Decode decodes one JSON text. It keeps numbers as written, within bounds: the validator calculates with them exactly,
// and 1e999999 would take as much memory as it has digits.
func Decode(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var document any
	if err := dec.Decode(&document); err != nil {
		return nil, errors.New("is not valid JSON")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("is not valid JSON")
	}
	return document, bounded(document, maxDepth)
}

func bounded(v any, depth int) error {
	if depth == 0 {
		return fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if err := bounded(member, depth-1); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := bounded(item, depth-1); err != nil {
				return err
			}
		}
	case json.Number:
		return plainNumber(string(v))
	}
	return nil
}

func plainNumber(text string) error {
	const digits, exponent = 400, 400
	mantissa, power, scientific := strings.Cut(strings.ToLower(text), "e")
	n := 0
	for _, c := range strings.TrimLeft(strings.TrimLeft(power, "+-"), "0") {
		if n = n*10 + int(c-'0'); n > exponent {
			break
		}
	}
	if len(mantissa) > digits || scientific && n > exponent {
		return errors.New("holds a number too long to calculate with")
	}
	return nil
}
