package catalogue

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func list(n int, item string) []byte {
	return []byte("[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]")
}

// The work of checking an event is bounded for every schema, and so is the number of faults that are reported.
func TestChecksAreBounded(t *testing.T) {
	every := func(n int) string {
		return fmt.Sprintf(`{"$id":"https://schemas.example/x","items":{"allOf":%s}}`, list(n, `{"type":"string"}`))
	}
	const refused, faulty = "holds more than can be held", "too much to say where"
	for name, c := range map[string]struct {
		schema string
		event  []byte
		want   string // expected detail of the one field; empty if the event is valid
	}{
		"many rules, many values":  {every(500), list(50_000, `1`), refused},
		"some rules, many faults":  {every(50), list(50_000, `1`), faulty},
		"some rules, many values":  {every(50), list(50_000, `"x"`), ""},
		"names of members count":   {`{"propertyNames":{"allOf":` + string(list(1000, `{"maxLength":0}`)) + `}}`, members(5000), refused},
		"many listed values":       {fmt.Sprintf(`{"items":{"enum":%s}}`, numbers(6000)), list(2000, `5999`), ""},
		"many lists without twins": {`{"items":{"uniqueItems":true}}`, list(20_000, string(numbers(20))), ""},
		"expressions, a long text": {`{"pattern":"a.{900}$"}`, []byte(`"` + strings.Repeat("a", 1_200_000) + `"`), refused},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile([]byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			fields := s.Check(c.event)
			runtime.ReadMemStats(&after)
			switch {
			case c.want == "" && len(fields) > 0, c.want != "" && (len(fields) != 1 || !strings.Contains(fields[0].Detail, c.want)):
				t.Errorf("%v; want %q", fields, c.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 1<<30 {
				t.Errorf("it took %d MB", took>>20)
			}
		})
	}
	if _, err := Compile([]byte(`{"allOf":` + string(list(12, `{"pattern":"a.{900}$"}`)) + `}`)); err == nil || !strings.Contains(err.Error(), "regular expressions") {
		t.Errorf("endless expressions: %v", err)
	}
}

// numbers is a list of n different numbers.
func numbers(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",%d", i)
	}
	return []byte("[" + b.String()[1:] + "]")
}

func members(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":0`, i)
	}
	return []byte("{" + b.String()[1:] + "}")
}
