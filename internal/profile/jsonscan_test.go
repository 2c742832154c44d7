package profile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

var jsonTexts = []string{
	`{}`, `[]`, `""`, `0`, `-0`, `-1.5e+10`, `1E5`, `true`, `false`, `null`, " \t\r\n{ \"a\" : [ 1 , { } ] } \n", `"\u00e9\n\"\\\/\b\f\r\t"`,
	`{"a":1,"a":2}`, `{"long text with an escape \u0041 and a quote \" in it":"and é漢😀 behind"}`, `[1,[2,[3,{"a":[]}]]]`,
	``, ` `, `{`, `}`, `[1,]`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `tru`, `nulll`, `"`, `"\x"`, `"\u12g4"`,
	`"\u12`, "\"a\nb\"", "\"a\x00b\"", `"\`, `{} {}`, `[1 2]`, `{"a":1 "b":2}`, "\"abcdefghijklmnop\x1f\"", `"abcdefgh\"`, `"abcdefg\\"`, `"abcdefg"x`,
	"\ufeff{}", `NaN`, `'a'`, `[`, `{"a"`, `{"a":`, `{,}`, `"é`,
}

// What is JSON and what is not agrees with the standard library, except for nesting beyond any use and broken UTF-8.
func TestReadJSONAgreesWithTheLibrary(t *testing.T) {
	for _, text := range jsonTexts {
		checkReadJSON(t, []byte(text))
	}
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if readJSON(deep(maxDepth)) == nil || readJSON(deep(maxDepth+1)) != nil || readJSON(deep(1_000_000)) != nil {
		t.Error("nesting is not bounded where it should be")
	}
	if readJSON([]byte("\"\xff\"")) != nil {
		t.Error("broken UTF-8 was taken for JSON")
	}
}

func checkReadJSON(t *testing.T, b []byte) {
	t.Helper()
	value := readJSON(b)
	if want := json.Valid(b) && utf8.Valid(b); (value != nil) != want {
		t.Errorf("%q: read %v, want %v", b, value != nil, want)
	}
	if value != nil && !bytes.Equal(value, bytes.Trim(b, " \t\r\n")) {
		t.Errorf("%q: read as %q", b, value)
	}
}

func FuzzReadJSON(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.Count(b, []byte("[")) < maxDepth && bytes.Count(b, []byte("{")) < maxDepth/2 {
			checkReadJSON(t, b)
		}
		want := member{name: "id"}
		var object map[string]json.RawMessage
		if isObject(readJSON(b, &want)) && json.Unmarshal(b, &object) == nil && !bytes.Equal(object["id"], want.value) {
			t.Errorf("%q: found %q, want %q", b, want.value, object["id"])
		}
	})
}

func TestMembersAreFound(t *testing.T) {
	for _, c := range []struct{ text, id, data string }{
		{`{"id":1,"data":{"id":2}}`, `1`, `{"id":2}`},
		{`{"data" : [ 1 ] , "x":{"data":0}}`, ``, `[ 1 ]`},
		{`{"id":1,"id":"last"}`, `"last"`, ``},
		{`{"\u0069d":"escaped","d\u0061t\u0061":null}`, `"escaped"`, `null`},
		{`{"ID":1,"ids":2,"i":3,"dat\\":4,"xx":5}`, ``, ``},
		{`["id",1]`, ``, ``},
		{`{"id":1`, `1`, ``}, // not JSON: readJSON says so
	} {
		id, data := member{name: "id"}, member{name: "data"}
		value := readJSON([]byte(c.text), &id, &data)
		if string(id.value) != c.id || string(data.value) != c.data || (value == nil) == json.Valid([]byte(c.text)) {
			t.Errorf("%s: %q and %q in %q", c.text, id.value, data.value, value)
		}
	}
}

func TestTextIsEscaped(t *testing.T) {
	for _, text := range []string{"", "plain", `"quoted" \ and back`, "\x00\x1f\n\r\t", "é漢😀 <&>\u2028", "\xff broken \xc3", "\x7f"} {
		got := appendText(nil, text)
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != strings.ToValidUTF8(text, "\ufffd") || !utf8.Valid(got) {
			t.Errorf("%q: written %s, read %q: %v", text, got, back, err)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\"b\\c\n\xff")
	f.Fuzz(func(t *testing.T, text string) {
		var back string
		if err := json.Unmarshal(appendText(nil, text), &back); err != nil || back != string([]rune(text)) {
			t.Errorf("%q came back as %q: %v", text, back, err)
		}
	})
}
