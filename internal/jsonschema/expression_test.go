package jsonschema

import (
	"fmt"
	"regexp/syntax"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// The measured length is never below the length of the compiled program, and not far above it.
func TestExpressionsAreMeasuredOnTheirTree(t *testing.T) {
	for _, text := range []string{
		``, `a`, `abc`, `^abc$`, `a*`, `(a*)*`, `(a?)+`, `a{3}`, `a{3,}`, `a{0,7}`, `a{0}`, `(ab|cd|ef){2,5}`, `(?:)*`, `(?:a{2}){3}`,
		`[a-z]{1,63}`, `(?i)straße`, `\pL{4}`, `a|b|c|`, `()|()`, `\bword\b`, `a.{900}$`, `(a{0,100}|b{0,100})`, `x{0,1000}`, `((a{2,3}){2,3}){2,3}`,
		`^(?:[A-Z]{2}|[0-9]{3})-(?:\d{4}|x+)*$`, `(?s).*?`, `a{1,}?`, `[^\n]`, `(|a){3,}`,
	} {
		tree, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		measured := programLength(tree)
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if actual := len(program.Inst); measured < actual || measured > 2*actual+4 {
			t.Errorf("%q: measured %d, compiled %d", text, measured, actual)
		}
	}
}

// A schema whose expressions are too large is refused before any of them is compiled, with little memory.
func TestLargeExpressionsAreRefusedBeforeTheyAreCompiled(t *testing.T) {
	alternatives := "(" + strings.TrimSuffix(strings.Repeat("a{0,1000}|", 2700), "|") + ")"
	short := "(" + strings.TrimSuffix(strings.Repeat("a{0,1000}|", 400), "|") + ")"
	var many []string
	for i := range 27 {
		many = append(many, fmt.Sprintf(`"m%d":{"pattern":"x%d(a{0,900}|b{0,100})"}`, i, i))
	}
	for name, c := range map[string]struct{ schema, want string }{
		"27 KB of alternatives":     {`{"pattern":"` + alternatives + `"}`, "more than 4096 bytes"},
		"4 KB of alternatives":      {`{"pattern":"` + short + `"}`, "more than 10000 instructions"},
		"of members":                {`{"patternProperties":{"` + short + `":true}}`, "more than 10000 instructions"},
		"many, each small enough":   {`{"properties":{` + strings.Join(many, ",") + `}}`, "more than 10000 instructions"},
		"nested repeats":            {`{"pattern":"((ab|cd){30}){33}((ef|gh){30}){33}"}`, "more than 10000 instructions"},
		"behind a key that is dead": {`{"$defs":{"x":{"pattern":"` + short + `"}}}`, "more than 10000 instructions"},
	} {
		t.Run(name, func(t *testing.T) {
			document, err := Decode([]byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			patterns := &expressions{known: map[string]*expression{}}
			if _, err := compile(document, patterns, nil); err == nil {
				t.Error("the validator's compiler took it")
			}
			for text, e := range patterns.known {
				if e.compiled != nil {
					t.Errorf("%.20q… was compiled", text)
				}
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = Compile(document)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
				t.Errorf("it took %d MB", took>>20)
			}
		})
	}
}

// Expressions within the bounds are compiled, and each place with the same expression counts.
func TestExpressionsWithinTheBounds(t *testing.T) {
	document, err := Decode([]byte(`{"properties":{"a":{"pattern":"^[a-z]{1,63}$"},"b":{"pattern":"^[a-z]{1,63}$"}},
		"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile(document)
	if err != nil {
		t.Fatal(err)
	}
	for text, fits := range map[string]bool{
		`{"a":"abc","b":"d","x-y":"z"}`: true, `{"a":"ABC"}`: false, `{"b":""}`: false, `{"y":1}`: false, `{"x-y":1}`: false,
	} {
		document, err := Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if s.Fits(document) != fits || (len(s.Faults(document)) == 0) != fits {
			t.Errorf("%s: fits %v, faults %v", text, s.Fits(document), s.Faults(document))
		}
	}
	one := s.compiled.Properties["a"].Pattern.(*expression).length
	if s.Matching(1) < 2*one {
		t.Errorf("%d instructions; one of the two expressions has %d", s.Matching(1), one)
	}
}

// A value that has to be an expression by its format is parsed within the same bounds, by many goroutines at a time, and
// never compiled.
func TestValuesThatAreExpressionsAreBounded(t *testing.T) {
	s, err := Compile(map[string]any{"format": "regex"})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for text, fits := range map[string]bool{
				"a{2}": true, "a{": true, "(": false, strings.Repeat("a", maxExpression+1): false, strings.Repeat("a{0,1000}|", 400): false,
			} {
				if s.Fits(text) != fits {
					t.Errorf("%.20q…: fits %v", text, !fits)
				}
			}
		})
	}
	group.Wait()
	if s.Matching(1) < regexFormat {
		t.Errorf("the format counts as %d instructions", s.Matching(1))
	}
}
