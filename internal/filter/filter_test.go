package filter

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
)

//go:embed testdata/cases.txt
var cases string

func compile(t testing.TB, text string) *Filter {
	t.Helper()
	var source godwit.ContentFilter
	if err := json.Unmarshal([]byte(text), &source); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	f, wrong := Compile(source)
	if wrong != nil {
		t.Fatalf("%s: %v", text, wrong)
	}
	return f
}

// The table holds the behaviour that docs/filters.md promises. Most of it is what users of other products know.
func TestCases(t *testing.T) {
	n := 0
	for line := range strings.Lines(cases) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		n++
		parts := strings.Split(line, " ; ")
		if len(parts) != 3 || parts[2] != "yes" && parts[2] != "no" {
			t.Fatalf("%q is no case", line)
		}
		f := compile(t, `{"body":`+parts[0]+`}`)
		document := Open(&godwit.Event{Body: []byte(parts[1])})
		if got := f.Match(document); got != (parts[2] == "yes") {
			t.Errorf("%s: matched %v", line, got)
		}
		if miss, missed := f.Explain(document); missed != (parts[2] == "no") || missed && !strings.HasPrefix(miss.Place, "body") {
			t.Errorf("%s: explained as %v %v", line, miss, missed)
		}
	}
	if n < 200 {
		t.Errorf("the table has %d cases, want 200 and more", n)
	}
}

func TestMembersOfEvents(t *testing.T) {
	source := godwit.SourceID{1, 2, 3}
	event := &godwit.Event{
		Type: "order.paid", Attributes: map[string]string{"region": "eu"}, Body: []byte(`{"amount":5}`), Origin: godwit.Origin{Source: source},
		KeptHeaders: []godwit.KeptHeader{{Name: "X-Shop-Topic", Value: "orders"}, {Name: "Link", Value: "a"}, {Name: "link", Value: "b"}, {Name: "LINK", Value: "c"}},
	}
	for text, want := range map[string]bool{
		`{"type":"order.paid"}`:                                      true,
		`{"type":{"$startsWith":"invoice."}}`:                        false,
		`{"attributes":{"region":{"$in":["eu","us"]}}}`:              true,
		`{"attributes":{"size":"xl"}}`:                               false,
		`{"attributes":{"size":{"$exist":false}}}`:                   true,
		`{"headers":{"x-shop-topic":"orders"}}`:                      true,
		`{"headers":{"X-SHOP-Topic":{"$regex":"^ord"}}}`:             true,
		`{"headers":{"$or":[{"X-None":"a"},{"Link":"c"}]}}`:          true,
		`{"headers":{"link":["a","b"]}}`:                             true,
		`{"headers":{"x-none":{"$exist":true}}}`:                     false,
		`{"source":"` + source.String() + `"}`:                       true,
		`{"source":{"$exist":false}}`:                                false,
		`{"$or":[{"type":"x"},{"body":{"amount":{"$gt":4}}}]}`:       true,
		`{"$and":[{"type":"order.paid"},{"body":{"amount":6}}]}`:     false,
		`{"$not":{"body":{"amount":5}}}`:                             false,
		`{"type":"order.paid","body":{"amount":{"$gte":1,"$lt":6}}}`: true,
		`{}`: true,
	} {
		if got := compile(t, text).Match(Open(event)); got != want {
			t.Errorf("%s: matched %v", text, got)
		}
	}
	if got := compile(t, `{"source":{"$exist":true}}`).Match(Open(&godwit.Event{})); got {
		t.Error("an event without a source has one")
	}
}

func TestMistakesAreNamed(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20)
	many := strings.TrimSuffix(strings.Repeat(`{"a":1},`, 101), ",")
	for text, place := range map[string]string{
		`{"amount":1}`:                                  "amount",
		`{"$gt":1}`:                                     "$gt",
		`{"$or":[{"amount":1}]}`:                        "$or[0].amount",
		`{"$or":[]}`:                                    "$or",
		`{"$or":{"type":"x"}}`:                          "$or",
		`{"$or":["x"]}`:                                 "$or[0]",
		`{"$not":1}`:                                    "$not",
		`{"body":{"amount":{"$gt":true}}}`:              "body.amount.$gt",
		`{"body":{"amount":{"$gt":null}}}`:              "body.amount.$gt",
		`{"body":{"amount":{"$greater":1}}}`:            "body.amount.$greater",
		`{"body":{"a":{"$in":5}}}`:                      "body.a.$in",
		`{"body":{"a":{"$startsWith":5}}}`:              "body.a.$startsWith",
		`{"body":{"a":{"$contains":[]}}}`:               "body.a.$contains",
		`{"body":{"a":{"$exist":"yes"}}}`:               "body.a.$exist",
		`{"body":{"a":{"$regex":"("}}}`:                 "body.a.$regex",
		`{"body":{"a":{"$regex":"(?=x)"}}}`:             "body.a.$regex",
		`{"body":{"a":{"$regex":"(?:.?.?.?){400}"}}}`:   "body.a.$regex",
		`{"body":{"a":[]}}`:                             "body.a",
		`{"body":{"items":{"$and":[{"$x":1}]}}}`:        "body.items.$and[0].$x",
		`{"body":` + deep + `}`:                         "body.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a",
		`{"body":{"$or":[` + many + `]}}`:               "body.$or[100].a",
		`{"body":"` + strings.Repeat("x", 17000) + `"}`: "",
	} {
		var source godwit.ContentFilter
		if err := json.Unmarshal([]byte(text), &source); err != nil {
			t.Fatal(err)
		}
		if _, wrong := Compile(source); wrong == nil || wrong.Field != place || wrong.Detail == "" {
			t.Errorf("%.60s: %v, want a mistake at %q", text, wrong, place)
		}
	}
}

func TestMissSaysWhatIsWrong(t *testing.T) {
	document := Open(&godwit.Event{Type: "order.paid", Body: []byte(`{"amount":42,"items":[{"id":1}]}`)})
	for text, want := range map[string]string{
		`{"body":{"amount":{"$gte":100}}}`:        "body.amount.$gte wants at least 100; the event has 42",
		`{"body":{"total":{"$gte":100}}}`:         "body.total.$gte wants at least 100; the event has no such member",
		`{"type":"order.sent"}`:                   `type wants "order.sent"; the event has "order.paid"`,
		`{"body":{"items":{"id":5}}}`:             "body.items.id wants 5; the event has 1",
		`{"$or":[{"type":"a"},{"type":"b"}]}`:     "$or wants one of its parts to match; the event has other values",
		`{"body":{"amount":{"$not":42}}}`:         "body.amount.$not wants its part not to match; the event has 42",
		`{"body":{"amount":{"$exist":false}}}`:    "body.amount.$exist wants the member not to exist; the event has 42",
		`{"$and":[{},{"body":{"amount":"42"}}]}`:  `$and[1].body.amount wants "42"; the event has 42`,
		`{"body":{"amount":{"$nin":[41,42,43]}}}`: "body.amount.$nin does not want one of [41,42,43]; the event has 42",
	} {
		miss, missed := compile(t, text).Explain(document)
		if !missed || miss.String() != want {
			t.Errorf("%s: %q, want %q", text, miss.String(), want)
		}
	}
}

// A filter looks at a bounded part of an event. One that would look at more does not pass it, also if the rest of the filter is negated.
func TestCostIsBounded(t *testing.T) {
	numbers := "[" + strings.Repeat("1,", 500_000) + "1]"
	values := strings.TrimSuffix(strings.Repeat(`2,`, 900), ",")
	text := `"` + strings.Repeat("a", 1<<20) + `"`
	for _, c := range []struct {
		filter, body string
		passes       bool
	}{
		{`{"body":{"$neq":2}}`, numbers, true},
		{`{"body":{"$nin":[` + values + `]}}`, numbers, false},
		{`{"body":{"$not":{"$in":[` + values + `]}}}`, numbers, false},
		{`{"body":{"$regex":"^a+$"}}`, text, true},
		{`{"body":{"$not":{"$regex":"(a?b?c?){60}d"}}}`, text, false},
		{`{"body":{"$contains":"b"}}`, text, false},
	} {
		f, document := compile(t, c.filter), Open(&godwit.Event{Body: []byte(c.body)})
		if got := f.Match(document); got != c.passes {
			t.Errorf("%.60s: passes %v", c.filter, got)
		}
		miss, missed := f.Explain(document)
		if missed == c.passes || missed && c.filter != `{"body":{"$contains":"b"}}` && !strings.Contains(miss.String(), "too large for this filter") {
			t.Errorf("%.60s: explained by %v", c.filter, miss)
		}
	}
}

func FuzzFilter(f *testing.F) {
	for line := range strings.Lines(cases) {
		if parts := strings.Split(line, " ; "); len(parts) == 3 {
			f.Add([]byte(`{"body":`+parts[0]+`}`), []byte(parts[1]))
		}
	}
	f.Fuzz(func(t *testing.T, text, body []byte) {
		var source godwit.ContentFilter
		if json.Unmarshal(text, &source) != nil {
			return
		}
		compiled, wrong := Compile(source)
		if wrong != nil {
			return
		}
		document := Open(&godwit.Event{Type: "a", Body: body})
		if miss, missed := compiled.Explain(document); missed == compiled.Match(document) || missed && miss.Place == "" {
			t.Errorf("%s on %s: %+v %v", text, body, miss, missed)
		}
	})
}

// BenchmarkFilters matches one event against the different filters of many endpoints.
func BenchmarkFilters(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("filters=%d", n), func(b *testing.B) {
			filters := make([]*Filter, n)
			for i := range filters {
				filters[i] = compile(b, fmt.Sprintf(`{"type":{"$startsWith":"order."},"body":{"customer":{"id":%d},"amount":{"$gte":%d},"items":{"sku":{"$in":["a%d","b%d"]}}}}`, i, i, i, i))
			}
			event := &godwit.Event{Type: "order.paid", Body: []byte(`{"customer":{"id":7,"name":"A name"},"amount":2500,"currency":"EUR","items":[{"sku":"a7","qty":1},{"sku":"b9","qty":2}],"note":"` + strings.Repeat("x", 1000) + `"}`)}
			b.ReportAllocs()
			for b.Loop() {
				document := Open(event)
				for _, f := range filters {
					f.Match(document)
				}
			}
		})
	}
}
