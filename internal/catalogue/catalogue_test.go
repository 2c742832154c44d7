package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/jsonschema"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

var ctx = context.Background()

// counted is a real store that counts the reads of an entry.
type counted struct {
	*sqlite.Store
	reads atomic.Int64
	err   error
}

func (c *counted) EventType(ctx context.Context, tenant godwit.TenantID, name string) (*godwit.EventType, error) {
	c.reads.Add(1)
	if c.err != nil {
		return nil, c.err
	}
	return c.Store.EventType(ctx, tenant, name)
}

func newCatalogue(t testing.TB, tune func(*catalogue.Config)) (*catalogue.Catalogue, *counted, *clock.Manual, *godwit.Tenant) {
	t.Helper()
	s, err := sqlite.Open(ctx, t.TempDir(), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	db := &counted{Store: s}
	manual := clock.NewManual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	cfg := catalogue.Config{Store: db, Now: manual.Now}
	if tune != nil {
		tune(&cfg)
	}
	c, err := catalogue.New(cfg)
	must(t, err)
	tenant := &godwit.Tenant{ID: godwit.NewTenantID(manual.Now()), Code: profile.NewCode(), Name: "t", CreatedAt: manual.Now(), Validation: godwit.ValidateStrict}
	must(t, s.CreateTenant(ctx, tenant))
	tenant.OwnTypes = 1 // as soon as it has one
	return c, db, manual, tenant
}

func check(t *testing.T, c *catalogue.Catalogue, tenant *godwit.Tenant, eventType, payload string) []string {
	t.Helper()
	errs, err := c.Check(ctx, tenant, catalogue.Event{Type: eventType, ContentType: "application/json", Payload: []byte(payload)})
	must(t, err)
	return paths(errs)
}

func TestCheckAsksTheStoreSeldom(t *testing.T) {
	c, db, manual, tenant := newCatalogue(t, func(cfg *catalogue.Config) { cfg.TTL = 5 * time.Second })
	_, _, err := c.Put(ctx, tenant.ID, "a.b", catalogue.Draft{Schema: []byte(`{"type":"integer"}`)}, godwit.Match{})
	must(t, err)
	db.reads.Store(0)
	for range 100 {
		if got := check(t, c, tenant, "a.b", `1`); len(got) != 0 {
			t.Fatalf("fits not: %v", got)
		}
		if got := check(t, c, tenant, "a.c", `1`); !slices.Equal(got, []string{"type"}) {
			t.Fatalf("unknown type: %v", got)
		}
	}
	if n := db.reads.Load(); n != 3 { // of a.c also the shared one
		t.Errorf("%d reads", n)
	}
	// Another node changes the entry: this node uses the change when its cached entry has expired.
	other, err := catalogue.New(catalogue.Config{Store: db.Store, Now: manual.Now})
	must(t, err)
	_, _, err = other.Put(ctx, tenant.ID, "a.b", catalogue.Draft{Schema: []byte(`{"type":"string"}`)}, godwit.Match{})
	must(t, err)
	if got := check(t, c, tenant, "a.b", `1`); len(got) != 0 {
		t.Errorf("before its time: %v", got)
	}
	manual.Advance(5 * time.Second)
	if got := check(t, c, tenant, "a.b", `1`); !slices.Equal(got, []string{"data"}) {
		t.Errorf("after its time: %v", got)
	}
	// A change on this node applies at once.
	_, _, err = c.Put(ctx, tenant.ID, "a.b", catalogue.Draft{Schema: []byte(`true`)}, godwit.Match{})
	must(t, err)
	if got := check(t, c, tenant, "a.b", `1`); len(got) != 0 {
		t.Errorf("after a change: %v", got)
	}
	must(t, c.Delete(ctx, tenant.ID, "a.b", godwit.Match{}))
	if got := check(t, c, tenant, "a.b", `1`); !slices.Equal(got, []string{"type"}) {
		t.Errorf("after it was deleted: %v", got)
	}
	db.err = store.ErrUnavailable
	manual.Advance(time.Hour)
	if _, err := c.Check(ctx, tenant, catalogue.Event{Type: "a.b"}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("without a store: %v", err)
	}
	off := *tenant
	off.Validation = godwit.ValidateNone
	if got := check(t, c, &off, "x.y", `1`); len(got) != 0 {
		t.Errorf("switched off: %v", got)
	}
}

func TestCacheIsBounded(t *testing.T) {
	c, db, _, tenant := newCatalogue(t, func(cfg *catalogue.Config) { cfg.CacheSize = 10 })
	for i := range 100 {
		check(t, c, tenant, fmt.Sprintf("a.t%d", i), `1`)
	}
	db.reads.Store(0)
	for i := range 100 {
		check(t, c, tenant, fmt.Sprintf("a.t%d", i), `1`)
	}
	if n := db.reads.Load(); n < 90 {
		t.Errorf("%d reads: more is remembered than may be", n)
	}
}

func TestVersionsAreKeptWithinBounds(t *testing.T) {
	c, _, manual, tenant := newCatalogue(t, nil)
	var entry *godwit.EventType
	for i := range 20 {
		var err error
		entry, _, err = c.Put(ctx, tenant.ID, "a.b", catalogue.Draft{Schema: fmt.Appendf(nil, `{"title":"%d%s"}`, i, strings.Repeat("x", 10000))}, godwit.Match{})
		must(t, err)
		manual.Advance(time.Second)
	}
	last := entry.Schemas[len(entry.Schemas)-1]
	if n := len(entry.Schemas); n != 13 || last.Version != 20 || entry.Schemas[0].Version != 8 {
		t.Errorf("%d versions, last %d", n, last.Version)
	}
	got, err := c.Get(ctx, tenant, "a.b")
	must(t, err)
	if len(got.Schemas) != 13 || !got.CreatedAt.Equal(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)) || !got.UpdatedAt.Equal(last.CreatedAt) {
		t.Errorf("stored %d versions, created %s", len(got.Schemas), got.CreatedAt)
	}
}

func TestTypesOfATenantAreBounded(t *testing.T) {
	c, db, manual, tenant := newCatalogue(t, nil)
	for i := range catalogue.MaxTypes {
		must(t, db.PutEventType(ctx, &godwit.EventType{TenantID: tenant.ID, Name: fmt.Sprintf("a.t%d", i), CreatedAt: manual.Now(), UpdatedAt: manual.Now()}))
	}
	if _, _, err := c.Put(ctx, tenant.ID, "one.more", catalogue.Draft{}, godwit.Match{}); !errors.Is(err, problem.LimitReached) {
		t.Errorf("one more: %v", err)
	}
	if _, _, err := c.Put(ctx, tenant.ID, "a.t7", catalogue.Draft{Description: "changed"}, godwit.Match{}); err != nil {
		t.Errorf("a change: %v", err)
	}
}

func TestSchemasAreBounded(t *testing.T) {
	// Each of 40 definitions refers to the next one twice: a trillion rules in two kilobytes.
	var doubling strings.Builder
	doubling.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling.WriteString(`"d40":{"type":"object"}}}`)
	for name, schema := range map[string]string{
		"doubling":           doubling.String(),
		"recursion":          `{"$ref":"#"}`,
		"recursion in depth": `{"properties":{"child":{"$ref":"#"}}}`,
		"dynamic recursion":  `{"$dynamicAnchor":"a","items":{"$dynamicRef":"#a"}}`,
		"recursion by scope": `{"$id":"urn:a","$dynamicAnchor":"n","allOf":[{"$ref":"urn:b"},{"$ref":"urn:b"}],"$defs":{
			"b":{"$id":"urn:b","properties":{"x":{"$dynamicRef":"#n"}},"$defs":{"leaf":{"$dynamicAnchor":"n"}}}}}`,
		"mutual recursion":   `{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/b"}},"b":{"items":{"$ref":"#/$defs/a"}}}}`,
		"the draft itself":   `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
		"another host":       `{"$ref":"https://example.com/a.json"}`,
		"a file":             `{"$ref":"file:///etc/passwd"}`,
		"another base":       `{"$id":"https://example.com/","$ref":"a.json"}`,
		"unknown definition": `{"$ref":"#/$defs/none"}`,
		"another dialect":    `{"$schema":"https://example.com/draft"}`,
		"deep":               strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 100),
		"large":              `{"title":"` + strings.Repeat("x", jsonschema.MaxSchema) + `"}`,
		"number":             `{"minimum":1e99999999}`,
		"text":               `"x"`,
		"no JSON":            `{`,
		"nothing":            ``,
		"wrong pattern":      `{"pattern":"("}`,
		"wrong type":         `{"type":7}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := catalogue.Compile([]byte(schema))
			var field *godwit.FieldError
			if !errors.As(err, &field) || field.Field != "schema" || field.Detail == "" {
				t.Errorf("got %v", err)
			}
			if err != nil && len(err.Error()) > 600 {
				t.Errorf("the answer has %d bytes", len(err.Error()))
			}
		})
	}
	for _, schema := range []string{
		`true`, `{}`, `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, `{"$id":"https://example.com/order","$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`,
		`{"$ref":"#a","$defs":{"x":{"$anchor":"a"}}}`,
	} {
		if _, err := catalogue.Compile([]byte(schema)); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestFieldsAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ schema, document, want string }{
		"missing":       {`{"properties":{"a":{"required":["b","c"]}}}`, `{"a":{}}`, "a.b a.c"},
		"item":          {`{"properties":{"a":{"items":{"properties":{"n":{"minimum":1}}}}}}`, `{"a":[{"n":1},{"n":0}]}`, "a[1].n"},
		"unknown":       {`{"additionalProperties":false,"properties":{"a":true}}`, `{"a":1,"b":2}`, "b"},
		"alternatives":  {`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":1}`, "a"},
		"by reference":  {`{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{"const":"b"}}}}}`, `{"a":1}`, "a"},
		"condition":     {`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, "b"},
		"dependent":     {`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, "b"},
		"not":           {`{"properties":{"a":{"not":{"type":"string"}}}}`, `{"a":"x"}`, "a"},
		"unevaluated":   {`{"properties":{"a":true},"unevaluatedProperties":false}`, `{"a":1,"b":1}`, "b"},
		"member names":  {`{"propertyNames":{"maxLength":2}}`, `{"abc":1}`, ""},
		"format":        {`{"properties":{"a":{"format":"date-time"}}}`, `{"a":"x"}`, "a"},
		"large numbers": {`{"minimum":1}`, `1e999999999`, ""},
		"deep":          {`true`, strings.Repeat("[", 100) + strings.Repeat("]", 100), ""},
		"many":          {`{"items":{"type":"string"}}`, `[` + strings.TrimSuffix(strings.Repeat("1,", 1000), ",") + `]`, "0 1 10 100 101 102 103 104 105 106 107 108 109 11 110 111 112 113 114 115"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := catalogue.Compile([]byte(c.schema))
			must(t, err)
			errs := s.Check([]byte(c.document))
			if got := strings.Join(paths(errs), " "); got != c.want || len(errs) == 0 {
				t.Errorf("got %q, want %q: %v", got, c.want, errs)
			}
			for _, e := range errs {
				if e.Detail == "" {
					t.Errorf("%s: no reason", e.Field)
				}
			}
		})
	}
}

// A hostile event or schema must neither crash nor hang.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"type":"object","required":["a"]}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"minimum":1,"multipleOf":0.1}`), []byte(`1e400`))
	f.Add([]byte(`{"$ref":"#/$defs/a","$defs":{"a":{"pattern":"^(a+)+$"}}}`), []byte(`"aaaaaaaaaaaaaaaaaaaaaaaab"`))
	f.Add([]byte(`{"uniqueItems":true,"contentMediaType":"application/json"}`), []byte(`[1,1.0,"{"]`))
	f.Fuzz(func(t *testing.T, schema, document []byte) {
		s, err := catalogue.Compile(schema)
		if err == nil {
			s.Check(document)
		}
		catalogue.OJS().Check(document)
		catalogue.Cybercube().Check(document)
	})
}
