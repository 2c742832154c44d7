package idempotency_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/trace"
)

var published = idempotency.Format{MinLength: idempotency.DefaultMinLength, MaxLength: idempotency.DefaultMaxLength}

// anyLength parses syntax alone.
var anyLength = idempotency.Format{MinLength: 0, MaxLength: 1 << 20}

func TestKeySyntax(t *testing.T) {
	trace.Covers(t, "IKH-SYN-2")
	for _, c := range []struct{ value, want string }{
		{`"abc def"`, `abc def`},
		{`"a\"b"`, `a"b`},
		{`"a\\b"`, `a\b`},
		{` "x" `, `x`},
		{`"x";v=1`, `x`}, // parameters mean nothing (K-2)
		{`"x";v="y"; w`, `x`},
		{`""`, ``},
	} {
		got, err := anyLength.ParseValue(c.value)
		if err != nil || got != c.want {
			t.Errorf("ParseValue(%q) = %q, %v; want %q", c.value, got, err, c.want)
		}
	}
	for _, value := range []string{`"a\n"`, `"unterminated`, `"é"`, "\"tab\t\"", `"a"b`, ``, `   `, `"a\`, `"a" "b"`, `"x";`, `"x";V=1`, "\"\x7f\""} {
		if got, err := anyLength.ParseValue(value); !errors.Is(err, problem.KeyMalformed) {
			t.Errorf("ParseValue(%q) = %q, %v; want malformed", value, got, err)
		}
	}
}

func TestKeyOfAnotherType(t *testing.T) {
	trace.Covers(t, "IKH-SYN-3")
	for _, value := range []string{
		`abc-def-abc-def-abc-def`, `123`, `1.5`, `?1`, `:aGkgaGkgaGkgaGkgaGk=:`, `("a" "b")`, `8e03978e-40d5-43e8-bc93-6894a57f9324`,
		`fe03978e-40d5-43e8-bc93-6894a57f9324`, `@1659578233`, `%"f%c3%bc%c3%bc f%c3%bc%c3%bc fff"`,
	} {
		if got, err := published.ParseValue(value); !errors.Is(err, problem.KeyMalformed) {
			t.Errorf("ParseValue(%q) = %q, %v; want malformed", value, got, err)
		}
	}
}

func TestKeyFieldLines(t *testing.T) {
	trace.Covers(t, "IKH-SYN-5")
	const key = `"8e03978e-40d5-43e8-bc93-6894a57f9324"`
	for name, c := range map[string]struct {
		lines []string
		want  *problem.Kind
	}{
		"none":        {nil, problem.KeyMissing},
		"two equal":   {[]string{key, key}, problem.KeyRepeated},
		"two others":  {[]string{key, `"other-key-other-key"`}, problem.KeyRepeated},
		"list":        {[]string{key + `, "b"`}, problem.KeyMalformed},
		"list equal":  {[]string{key + ", " + key}, problem.KeyMalformed},
		"one empty":   {[]string{""}, problem.KeyMalformed},
		"three lines": {[]string{key, "", key}, problem.KeyRepeated},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := published.Parse(http.Header{"Idempotency-Key": c.lines}); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestKeyExamples(t *testing.T) {
	trace.Covers(t, "IKH-SYN-6", "IKH-SYN-7")
	for _, key := range []string{"8e03978e-40d5-43e8-bc93-6894a57f9324", "clkyoesmbgybucifusbbtdsbohtyuuwz"} {
		got, err := published.Parse(http.Header{"Idempotency-Key": {`"` + key + `"`}})
		if err != nil || got != key {
			t.Errorf("%s: got %q, %v", key, got, err)
		}
	}
}

func TestKeyLength(t *testing.T) {
	for _, c := range []struct {
		n    int
		want *problem.Kind
	}{
		{0, problem.KeyTooShort}, {15, problem.KeyTooShort}, {16, nil}, {255, nil}, {256, problem.KeyTooLong}, {5000, problem.KeyTooLong},
	} {
		_, err := published.ParseValue(`"` + strings.Repeat("k", c.n) + `"`)
		if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%d characters: got %v, want %v", c.n, err, c.want)
		}
	}
	// Counted after decoding: eight backslashes are sixteen characters on the wire.
	if _, err := published.ParseValue(`"` + strings.Repeat(`\\`, 8) + `"`); !errors.Is(err, problem.KeyTooShort) {
		t.Errorf("escaped characters: got %v", err)
	}
}

// TestStructuredFieldVectors runs the public cases: what is a String must decode as told, everything else must be refused.
func TestStructuredFieldVectors(t *testing.T) {
	trace.Covers(t, "IKH-SYN-2", "IKH-SYN-3")
	type vector struct {
		Name     string            `json:"name"`
		Raw      []string          `json:"raw"`
		Type     string            `json:"header_type"`
		Expected []json.RawMessage `json:"expected"`
		MustFail bool              `json:"must_fail"`
		CanFail  bool              `json:"can_fail"`
	}
	ran := 0
	for _, file := range []string{"string.json", "string-generated.json", "token.json", "item.json"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "spec", "vectors", "structured-fields", file))
		if err != nil {
			t.Fatal(err)
		}
		var vectors []vector
		if err := json.Unmarshal(text, &vectors); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, v := range vectors {
			if v.Type != "item" {
				continue
			}
			ran++
			var want string
			isString := !v.MustFail && json.Unmarshal(v.Expected[0], &want) == nil
			got, err := anyLength.Parse(http.Header{"Idempotency-Key": v.Raw})
			switch {
			case isString && len(v.Raw) == 1:
				if err != nil && !v.CanFail || err == nil && got != want {
					t.Errorf("%s: %s: got %q, %v; want %q", file, v.Name, got, err, want)
				}
			case err == nil:
				t.Errorf("%s: %s: accepted %q as %q", file, v.Name, v.Raw, got)
			}
		}
	}
	if ran < 270 {
		t.Errorf("only %d cases ran", ran)
	}
}

func FuzzKey(f *testing.F) {
	for _, seed := range []string{
		`"8e03978e-40d5-43e8-bc93-6894a57f9324"`, `"a\"b\\c-a-long-enough-key"`, `"x";v=1`, `abc`, `"é"`, `""`, `"a", "b"`, `:aGk=:`, `("a")`, "\"\x00\"", `"` + strings.Repeat("k", 300) + `"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, err := published.ParseValue(value)
		if err != nil {
			var p *problem.Problem
			if !errors.As(err, &p) || p.Status != http.StatusBadRequest {
				t.Fatalf("%q: not a 400: %v", value, err)
			}
			return
		}
		if len(key) < published.MinLength || len(key) > published.MaxLength {
			t.Fatalf("%q: accepted %d characters", value, len(key))
		}
		// Written back in its one canonical form it must mean the same.
		again, err := published.ParseValue(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`)
		if err != nil || again != key {
			t.Fatalf("%q: %q reads back as %q, %v", value, key, again, err)
		}
	})
}
