package profile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

var update = flag.Bool("update", false, "write the golden files anew")

// renderCases are messages of every format and kind of payload.
func renderCases() []struct {
	name string
	m    Message
} {
	object := []byte(` { "amount" : 12.50, "text": "é漢 \u00e9", "big": 12345678901234567890 } ` + "\n")
	retry := message(godwit.FormatRaw, object)
	retry.Delivery.Attempts, retry.Attempt = 9, 10
	retry.Delivery.Run = godwit.Run{Attempts: 2, FirstAt: now.Add(-time.Hour + 700*time.Millisecond)}
	odd := message(godwit.FormatRaw, []byte{0, 1, 0xff})
	odd.Event.ContentType, odd.Event.Key = `text/"odd"; x=é`, `a "quoted\ key`
	odd.Budget = Budget{}
	happened := message(godwit.FormatRaw, []byte(`{"id":"ord_7","object":"order","n":1}`))
	happened.Event.OccurredAt = time.Date(2026, 2, 15, 23, 0, 0, 0, time.FixedZone("", 3600))
	test := message(godwit.FormatRaw, []byte(`{}`))
	test.Event.Type = "godwit.test"
	own := message(godwit.FormatOJS, []byte(`{"queue":"payments"}`))
	own.Event.Body, own.Event.SourceID = []byte(`{"id":"theirs","type":"order.paid","ext":1e3,"data":{"queue":"payments"}}`), "theirs"
	update := message(godwit.FormatCybercube, nil)
	update.Event.Type, update.Event.SourceID = "project.updated", "evt_2NrMj3K4L5M6N7O8P9Q0R1S2"
	update.Event.Body = []byte(`{"id":"evt_2NrMj3K4L5M6N7O8P9Q0R1S2","type":"project.updated","api_version":"2026-01-17","created_at":"2026-01-17T14:30:00Z",` +
		`"data":{"object":{"id":"PRJ-X2M8KD-F","object":"project","name":"Customer Portal v2"},"previous_attributes":{"name":"Customer Portal"}},` +
		`"account_id":"ACC-9F4K7Q-T","livemode":true}`)
	return []struct {
		name string
		m    Message
	}{
		{"raw object", message(godwit.FormatRaw, object)}, {"raw object, third attempt of a replay", retry},
		{"raw object with id and object, told later", happened}, {"raw empty object of a test", test},
		{"raw array", message(godwit.FormatRaw, []byte(`[1, 2]`))}, {"raw text", message(godwit.FormatRaw, []byte(`"hello"`))},
		{"raw bytes", odd}, {"raw nothing", message(godwit.FormatRaw, nil)},
		{"ojs", message(godwit.FormatOJS, []byte(`{"queue":"payments","attempt":1}`))}, {"ojs with an id of its own", own},
		{"cybercube", message(godwit.FormatCybercube, []byte(`{"id":"PRJ-X2M8KD-F","object":"project"}`))}, {"cybercube update", update},
	}
}

// Golden files hold what goes out, so that a later version cannot change the bytes of a retry unnoticed.
func TestRenderedBytesStayWhatTheyAre(t *testing.T) {
	for _, name := range Names() {
		p, _ := Lookup(name)
		var out bytes.Buffer
		for _, c := range renderCases() {
			h, body := p.Render(c.m)
			fmt.Fprintf(&out, "== %s\n", c.name)
			var names []string
			for field := range h {
				names = append(names, field)
			}
			slices.Sort(names)
			for _, field := range names {
				fmt.Fprintf(&out, "%s: %s\n", field, strings.Join(h[field], ", "))
			}
			fmt.Fprintf(&out, "\n%q\n\n", body)
		}
		file := filepath.Join("testdata", "render", name+".golden")
		if *update {
			if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s renders otherwise than %s says:\n%s", name, file, out.Bytes())
		}
	}
}

func TestBodiesAreTheSameForEveryAttempt(t *testing.T) {
	for _, name := range Names() {
		p, _ := Lookup(name)
		for _, c := range renderCases() {
			first, again := c.m, c.m
			later := *c.m.Delivery
			later.Attempts, later.Run = 5, godwit.Run{Attempts: 5, FirstAt: now, Trigger: godwit.TriggerReplay}
			again.Delivery, again.Attempt, again.ID = &later, 6, godwit.NewAttemptID(now)
			h1, b1 := p.Render(first)
			h2, b2 := p.Render(again)
			if !bytes.Equal(b1, b2) || h1.Get(fieldKey) != h2.Get(fieldKey) {
				t.Errorf("%s, %s: a retry differs", name, c.name)
			}
		}
	}
}

func TestOwnFormatAndRawProfilesSendTheBodyItself(t *testing.T) {
	for _, name := range Names() {
		p, _ := Lookup(name)
		for _, c := range renderCases() {
			if own := name == "eds" || name == "standard-webhooks" || name == c.m.Event.Format; !own {
				continue
			}
			if _, body := p.Render(c.m); !bytes.Equal(body, c.m.Event.Body) {
				t.Errorf("%s changed %s: %q", name, c.name, body)
			}
		}
	}
}

func decode(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return out
}

func TestConversionToOJS(t *testing.T) {
	cases := map[string]struct {
		m       Message
		data    string
		subject any
	}{
		"raw object":   {message("", []byte(` {"a":1.50,"b":[]} `)), `{"a":1.50,"b":[]}`, nil},
		"raw array":    {message("", []byte(`[1,2]`)), `{"value":[1,2]}`, nil},
		"raw null":     {message("", []byte(`null`)), `{"value":null}`, nil},
		"raw bytes":    {message("", []byte("\xff")), `{"content_type":"application/json","base64":"/w=="}`, nil},
		"raw nothing":  {message("", nil), `{"content_type":"application/json","base64":""}`, nil},
		"cybercube":    {message("cybercube", []byte(`{"id":"PRJ-1","n":1.0}`)), `{"object":{"id":"PRJ-1","n":1.0}}`, "PRJ-1"},
		"no id":        {message("cybercube", []byte(`{"n":1}`)), `{"object":{"n":1}}`, nil},
		"numeric id":   {message("cybercube", []byte(`{"id":7}`)), `{"object":{"id":7}}`, nil},
		"escaped id":   {message("cybercube", []byte(`{"id":"a\"b"}`)), `{"object":{"id":"a\"b"}}`, `a"b`},
		"not an event": {broken("cybercube", `{"data":[]}`), `{"data":[]}`, nil},
		"not JSON":     {broken("cybercube", `{`), `{"content_type":"application/json","base64":"ew=="}`, nil},
	}
	for name, c := range cases {
		h, body := ojs{}.Render(c.m)
		got := decode(t, body)
		if !bytes.HasSuffix(body, []byte(`"data":`+c.data+`}`)) {
			t.Errorf("%s: data is not verbatim: %s", name, body)
		}
		delete(got, "data")
		want := map[string]any{"specversion": "1.0", "id": "evt_019539a4-b68c-7def-8000-112233445566", "type": "order.paid",
			"source": "ojs://godwit", "time": "2026-06-01T12:00:00.25Z"}
		if c.subject != nil {
			want["subject"] = c.subject
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if h.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v", name, h)
		}
	}
}

func broken(format, body string) Message {
	m := message(format, []byte(`{}`))
	m.Event.Body = []byte(body)
	return m
}

func TestConversionToCybercube(t *testing.T) {
	trace.Covers(t, "CCW-EVT-2")
	const id = "evt_01JMWT9DMCFQQR000H48SM8NB6"
	for name, c := range map[string]struct {
		m      Message
		object string
	}{
		"raw object":     {message("", []byte(` {"a":1.50} `)), `{"id":"` + id + `","object":"order","a":1.50}`},
		"raw empty":      {message("", []byte(`{ }`)), `{"id":"` + id + `","object":"order" }`},
		"raw with id":    {message("", []byte(`{"id":"ord_1","a":1}`)), `{"object":"order","id":"ord_1","a":1}`},
		"raw with both":  {message("", []byte(`{"object":"x","id":"ord_1"}`)), `{"object":"x","id":"ord_1"}`},
		"raw array":      {message("", []byte(`[1]`)), `{"id":"` + id + `","object":"order","value":[1]}`},
		"raw bytes":      {message("", []byte("\xff")), `{"id":"` + id + `","object":"order","content_type":"application/json","base64":"/w=="}`},
		"ojs":            {message("ojs", []byte(`{"queue":"q"}`)), `{"id":"ord_1","object":"order","queue":"q"}`},
		"ojs with id":    {message("ojs", []byte(`{"id":5}`)), `{"object":"order","id":5}`},
		"ojs no subject": {broken("ojs", `{"data":{"a":1}}`), `{"id":"` + id + `","object":"order","a":1}`},
		"ojs odd":        {broken("ojs", `{"data":{},"subject":7}`), `{"id":"` + id + `","object":"order"}`},
		"ojs no data":    {broken("ojs", `{"subject":"s"}`), `{"id":"` + id + `","object":"order","subject":"s"}`},
		"ojs not JSON":   {broken("ojs", `{`), `{"id":"` + id + `","object":"order","content_type":"application/json","base64":"ew=="}`},
	} {
		_, body := cybercube{}.Render(c.m)
		if !bytes.Contains(body, []byte(`"data":{"object":`+c.object+`}`)) {
			t.Errorf("%s: %s, want the object %s", name, body, c.object)
		}
		got := decode(t, body)
		delete(got, "data")
		if want := (map[string]any{"id": id, "type": "order.paid", "api_version": "2026-01-17", "created_at": "2026-06-01T12:00:00Z",
			"account_id": "ACC-9F4K7Q-T", "livemode": true}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for eventType, live := range map[string]bool{"webhook.test": false, "godwit.test": false, "order.test": true} {
		m := message("", []byte(`{}`))
		m.Event.Type = eventType
		if _, body := (cybercube{}).Render(m); decode(t, body)["livemode"] != live {
			t.Errorf("%s: %s", eventType, body)
		}
	}
}

func TestEnvelopesAreCompleted(t *testing.T) {
	at := now.Add(5 * time.Millisecond)
	for in, want := range map[string]string{
		`{"type":"a","x":1.0}`: `{"specversion":"1.0","id":"evt_1","time":"2026-06-01T12:00:00.005Z","type":"a","x":1.0}`,
		`{ "id":"mine", "time":"2026-01-01T00:00:00Z","specversion":"1.0" }`: `{ "id":"mine", "time":"2026-01-01T00:00:00Z","specversion":"1.0" }`,
		`{"id":"mine"}`: `{"specversion":"1.0","time":"2026-06-01T12:00:00.005Z","id":"mine"}`,
		`{}`:            `{"specversion":"1.0","id":"evt_1","time":"2026-06-01T12:00:00.005Z"}`,
		`[]`:            `[]`, `{`: `{`, ``: ``,
	} {
		if got := CompleteOJS([]byte(in), "evt_1", at); string(got) != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestReceiversKnowEventsByTheirOwnIDs(t *testing.T) {
	e := &godwit.Event{ID: testEventID, SourceID: "theirs"}
	for _, c := range []struct{ profile, format, want string }{
		{"eds", "ojs", e.ID.String()}, {"standard-webhooks", "", e.ID.String()},
		{"ojs", "", e.ID.String()}, {"ojs", "ojs", "theirs"}, {"ojs", "cybercube", e.ID.String()},
		{"cybercube", "", "evt_01JMWT9DMCFQQR000H48SM8NB6"}, {"cybercube", "cybercube", "theirs"}, {"cybercube", "ojs", "evt_01JMWT9DMCFQQR000H48SM8NB6"},
	} {
		p, _ := Lookup(c.profile)
		e.Format = c.format
		if got := ReceiverEventID(p, e); got != c.want {
			t.Errorf("%s of format %q: %s, want %s", c.profile, c.format, got, c.want)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, c := range renderCases() {
		f.Add(c.m.Event.Body, c.m.Event.Format, c.m.Event.Type, c.m.Event.ContentType)
	}
	f.Add([]byte(`{"data":{"object":`), "cybercube", ".", "\xff")
	f.Fuzz(func(t *testing.T, body []byte, format, eventType, contentType string) {
		for _, name := range Names() {
			p, _ := Lookup(name)
			m := message(godwit.FormatRaw, body)
			m.Event.Format, m.Event.Type, m.Event.ContentType = format, eventType, contentType
			_, out := p.Render(m)
			if name == "eds" || name == "standard-webhooks" || name == format {
				if !bytes.Equal(out, body) {
					t.Errorf("%s changed %q of format %q", name, body, format)
				}
				continue
			}
			var envelope struct{ Data json.RawMessage }
			if !json.Valid(out) || json.Unmarshal(out, &envelope) != nil || !isObject(envelope.Data) {
				t.Errorf("%s made %q of %q", name, out, body)
			}
			if format == godwit.FormatRaw && readJSON(body) == nil && !bytes.Contains(out, []byte(base64.StdEncoding.EncodeToString(body))) {
				t.Errorf("%s lost %q", name, body)
			}
		}
	})
}
