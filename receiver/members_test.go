package receiver

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzMembers: of what is JSON the same members are found as by encoding/json, and nothing makes it panic.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","type":"b"}`, ` { "id" : "\u0061\"" , "id" : 1.5e3 , "type":{"id":"x","y":[1,{"z":"]}"}]}}`, `{}`, `[]`, `{"a"`, `{"\u0069d":"x"}`, `{"id":}`,
		`{"id":"\"}`, `{"id":tru e,"type":null}`, "{\"id\":\"\xff\"}", `{"ID":"A","id":"é"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parseMembers(body, "id", "type")
		for _, name := range []string{"id", "type", "other"} {
			_ = got.text(name)
		}
		if !json.Valid(body) {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(body, &want) != nil || want == nil {
			if err == nil {
				t.Fatalf("%q is no object, and was taken for one", body)
			}
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		for _, name := range []string{"id", "type"} {
			if !bytes.Equal(got[name], want[name]) {
				t.Fatalf("%q: %s is %q, want %q", body, name, got[name], want[name])
			}
			var text string
			if len(want[name]) > 0 && want[name][0] == '"' {
				if err := json.Unmarshal(want[name], &text); err != nil {
					t.Fatal(err)
				}
			}
			if got.text(name) != text {
				t.Fatalf("%q: %s reads %q, want %q", body, name, got.text(name), text)
			}
		}
	})
}
