package cloudevents

import (
	"net/http"
	"strings"
	"testing"
)

func FuzzRead(f *testing.F) {
	f.Add("application/cloudevents+json", "", "", []byte(`{"specversion":"1.0","id":"1","source":"/a","type":"t"}`))
	f.Add("application/json", "1.0", "a%20b", []byte(`{}`))
	f.Add("application/cloudevents+json; charset=utf-8", "0.3", "\xff", []byte(`null`))
	f.Fuzz(func(t *testing.T, media, version, id string, body []byte) {
		h := http.Header{"Content-Type": {media}, "Ce-Source": {"/a"}, "Ce-Type": {"t"}, "Ce-Id": {id}}
		if version != "" {
			h["Ce-Specversion"] = []string{version}
		}
		e, err := Read(h, body)
		if e != nil && (err != nil || e.Type == "") {
			t.Errorf("read %+v and %v", e, err)
		}
		if e == nil && err == nil && Present(h) {
			t.Error("neither read nor refused")
		}
		if e != nil && !Structured(h) && (version != "1.0" || id == "") {
			t.Errorf("took version %q, id %q", version, id)
		}
	})
}

func TestStructuredIsToldByTheMediaType(t *testing.T) {
	for media, want := range map[string]bool{
		MediaType: true, strings.ToUpper(MediaType): true, MediaType + "; charset=UTF-8": true,
		"application/cloudevents-batch+json": false, MediaType + "x": false, "application/json": false, "": false,
	} {
		if got := Structured(http.Header{"Content-Type": {media}}); got != want {
			t.Errorf("%q: %t", media, got)
		}
	}
}
