package evidence_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"

	"github.com/godwit-hq/godwit/evidence"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 123456789, time.FixedZone("", 3600))

// full has every member.
func full() evidence.Entry {
	return evidence.Entry{
		Type: evidence.Observation, At: noon, Decision: "duplicate_replayed", Executed: true,
		CommandID: "cmd_1", SubmittedID: "cmd_2", PreviousID: "cmd_0", Key: strings.Repeat("ab", 32), Command: "invoice.refund",
		Actor: "Zoë \"the <b>\" & Co\u2028\u007f😀", Channel: "http\t\b\f\r\n\\/\u0001\u001f", Fingerprint: "sha256:f", Stored: "sha256:g",
		OutcomeRef: "out_1", OutcomeStatus: "executed", OutcomeDigest: "sha256:d", Reason: "because", EventID: "evt_1",
		DeliveryID: "del_1", EndpointID: "sub_1", ResponseStatus: 204, Session: "ses_1", User: "zoë@example.com", Target: "sub_2",
	}
}

func link(t testing.TB, head evidence.Head, e evidence.Entry) evidence.Item {
	t.Helper()
	it, err := evidence.Link(head, "ten_a", e)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

func TestLinkGivesPlaceAndHash(t *testing.T) {
	first := link(t, evidence.Head{}, evidence.Entry{Type: evidence.Reserved, At: noon})
	if first.Seq != 1 || first.Prev != evidence.Genesis || first.Tenant != "ten_a" {
		t.Errorf("first item: %+v", first)
	}
	second := link(t, first.Head(), full())
	if second.Seq != 2 || second.Prev != first.Hash {
		t.Errorf("second item: %+v", second)
	}
	// The hash, computed from the line by other means: take the hash out, make it canonical, hash it.
	var members map[string]any
	if err := json.Unmarshal(evidence.Line(&second), &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "hash")
	plain, _ := json.Marshal(members)
	canonical, err := jcs.Transform(plain)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(canonical)
	if want := "sha256:" + hex.EncodeToString(sum[:]); second.Hash != want || second.Sum() != want {
		t.Errorf("hash is %s, want %s", second.Hash, want)
	}
	// A member that is added to the types and not to the encoder would be left out of the hash.
	if want := reflect.TypeFor[evidence.Entry]().NumField() - 1 + reflect.TypeFor[evidence.Item]().NumField() - 2; len(members) != want {
		t.Errorf("the full item has %d members without hash and checkpoint, want %d: %v", len(members), want, members)
	}
}

func TestTimesSurviveADatabaseOfMicroseconds(t *testing.T) {
	it := link(t, evidence.Head{}, full())
	if got := it.At.Format(time.RFC3339Nano); got != "2026-03-04T11:00:00.123456Z" {
		t.Errorf("at is %s", got)
	}
	if !bytes.Contains(evidence.Line(&it), []byte(`"at":"2026-03-04T11:00:00.123456Z"`)) {
		t.Errorf("line: %s", evidence.Line(&it))
	}
	kept := it
	kept.At = time.UnixMicro(it.At.UnixMicro()) // in the reader's zone
	if kept.Sum() != it.Hash || !bytes.Equal(evidence.Line(&kept), evidence.Line(&it)) {
		t.Error("the item differs after its time was kept as microseconds")
	}
	whole := link(t, evidence.Head{}, evidence.Entry{Type: "x", At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	if !bytes.Contains(evidence.Line(&whole), []byte(`"at":"2026-01-01T00:00:00.000000Z"`)) {
		t.Errorf("line: %s", evidence.Line(&whole))
	}
}

func TestLinkRefusesWhatHasNoPlace(t *testing.T) {
	ok := link(t, evidence.Head{}, full())
	cases := map[string]struct {
		head   evidence.Head
		tenant string
		change func(*evidence.Entry)
	}{
		"no type":             {tenant: "ten_a", change: func(e *evidence.Entry) { e.Type = "" }},
		"no time":             {tenant: "ten_a", change: func(e *evidence.Entry) { e.At = time.Time{} }},
		"year 10000":          {tenant: "ten_a", change: func(e *evidence.Entry) { e.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		"no UTF-8":            {tenant: "ten_a", change: func(e *evidence.Entry) { e.Actor = "a\xff" }},
		"U+0000":              {tenant: "ten_a", change: func(e *evidence.Entry) { e.Reason = "a\x00" }},
		"too long":            {tenant: "ten_a", change: func(e *evidence.Entry) { e.Channel = strings.Repeat("a", 5000) }},
		"no status":           {tenant: "ten_a", change: func(e *evidence.Entry) { e.ResponseStatus = -1 }},
		"no tenant":           {},
		"tenant no UTF-8":     {tenant: "\xff"},
		"head of another":     {head: ok.Head(), tenant: "ten_b"},
		"head without hash":   {head: evidence.Head{Seq: 1}, tenant: "ten_a"},
		"checkpoint missing":  {tenant: "ten_a", change: func(e *evidence.Entry) { e.Type = evidence.Signed }},
		"checkpoint too many": {tenant: "ten_a", change: func(e *evidence.Entry) { e.Checkpoint = &evidence.Checkpoint{} }},
		"checkpoint of later": {head: ok.Head(), tenant: "ten_a", change: func(e *evidence.Entry) {
			c, _ := evidence.Sign(testKey, evidence.Head{Tenant: "ten_a", Seq: 2, Hash: ok.Hash}, noon)
			*e = c.Entry(noon)
		}},
	}
	for name, c := range cases {
		e := full()
		if c.change != nil {
			c.change(&e)
		}
		if it, err := evidence.Link(c.head, c.tenant, e); err == nil {
			t.Errorf("%s: linked as %s", name, evidence.Line(&it))
		}
	}
}

func TestParseIsStrict(t *testing.T) {
	it := link(t, evidence.Head{}, full())
	line := string(evidence.Line(&it))
	back, err := evidence.Parse([]byte(line))
	if err != nil || !reflect.DeepEqual(back, it) {
		t.Fatalf("round trip: %+v, %v", back, err)
	}
	cases := map[string]string{
		"empty":             "",
		"not JSON":          "x",
		"null":              "null",
		"array":             "[" + line + "]",
		"space before":      " " + line,
		"space after":       line + " ",
		"two":               line + line,
		"space within":      strings.Replace(line, ":", ": ", 1),
		"unknown member":    strings.Replace(line, `"at"`, `"as":"","at"`, 1),
		"repeated member":   strings.Replace(line, `"type"`, `"tenant":"ten_a","type"`, 1),
		"other letters":     strings.Replace(line, `"tenant"`, `"Tenant"`, 1),
		"empty member":      strings.Replace(line, `"reason":"because"`, `"reason":""`, 1),
		"other escape":      strings.Replace(line, "Zo", `\u005ao`, 1),
		"solidus escaped":   strings.Replace(line, "/", `\/`, 1),
		"upper-case escape": strings.Replace(line, `\u001f`, `\u001F`, 1),
		"number as float":   strings.Replace(line, `"seq":1`, `"seq":1.0`, 1),
		"big number":        strings.Replace(line, `"seq":1`, `"seq":9007199254740992`, 1),
		"number as text":    strings.Replace(line, `"seq":1`, `"seq":"1"`, 1),
		"time in a zone":    strings.Replace(line, `11:00:00.123456Z`, `12:00:00.123456+01:00`, 1),
		"time without µs":   strings.Replace(line, `.123456Z`, `Z`, 1),
		"time with ns":      strings.Replace(line, `.123456Z`, `.1234560Z`, 1),
		"comma in time":     strings.Replace(line, `.123456Z`, `,123456Z`, 1),
		"hash upper case":   strings.Replace(line, it.Hash, strings.ToUpper(it.Hash), 1),
		"without tenant":    strings.Replace(line, `"tenant":"ten_a",`, ``, 1),
		"without executed":  strings.Replace(line, `"executed":true,`, ``, 1),
		"cut off":           line[:len(line)-1],
		"deep":              strings.Repeat("[", 100000),
	}
	for name, text := range cases {
		if text == line {
			t.Fatalf("%s: changes nothing", name)
		}
		if got, err := evidence.Parse([]byte(text)); err == nil {
			t.Errorf("%s: parsed as %+v", name, got)
		}
	}
}

func TestItemsAsJSONInAnswers(t *testing.T) {
	it := link(t, evidence.Head{}, full())
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode([]evidence.Item{it}); err != nil {
		t.Fatal(err)
	}
	var back []evidence.Item
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || !reflect.DeepEqual(back, []evidence.Item{it}) {
		t.Errorf("%+v, %v", back, err)
	}
}

// FuzzCanonical holds the encoder against a general one.
func FuzzCanonical(f *testing.F) {
	f.Add("a", "b", "c", int64(1), int64(0), 200, true)
	f.Add("\u2028<&>", "\x00\x1f\x7f\\\"/", "😀\xff\xed\xa0\x80é", int64(9007199254740991), int64(1700000000123456), 0, false)
	f.Fuzz(func(t *testing.T, a, b, c string, seq, micros int64, status int, executed bool) {
		if seq < 1 || seq > 9007199254740991 || status < 0 || status > 999 {
			return
		}
		at := time.UnixMicro(micros).UTC()
		if at.Year() < 1 || at.Year() > 9999 {
			return
		}
		e := evidence.Entry{Type: a, At: at, Decision: b, Executed: executed, CommandID: c, SubmittedID: a, PreviousID: b, Key: c, Command: a,
			Actor: b, Channel: c, Fingerprint: a, Stored: b, OutcomeRef: c, OutcomeStatus: a, OutcomeDigest: b, Reason: c, EventID: a,
			DeliveryID: b, EndpointID: c, ResponseStatus: status, Session: a, User: c, Target: b}
		if a == evidence.Signed || len(a)%2 == 1 {
			e.Checkpoint = &evidence.Checkpoint{Seq: seq, Hash: a, KeyID: b, Signature: c}
		}
		it := evidence.Item{Tenant: a, Seq: seq, Prev: b, Entry: e, Hash: c}
		type bare evidence.Item
		plain, err := json.Marshal(struct {
			bare
			At string `json:"at"`
		}{bare(it), at.Format("2006-01-02T15:04:05.000000Z")})
		if err != nil {
			t.Fatal(err)
		}
		want, err := jcs.Transform(plain)
		if err != nil {
			t.Fatal(err)
		}
		line := evidence.Line(&it)
		if !bytes.Equal(line, want) {
			t.Errorf("\n got %s\nwant %s", line, want)
		}
		if back, err := evidence.Parse(line); err == nil && !bytes.Equal(evidence.Line(&back), line) {
			t.Errorf("%s parsed as %s", line, evidence.Line(&back))
		}
	})
}

func FuzzParse(f *testing.F) {
	it := link(f, evidence.Head{}, full())
	f.Add(evidence.Line(&it))
	f.Add([]byte(`{"at":"2026-01-01T00:00:00.000000Z"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		it, err := evidence.Parse(line)
		if err == nil && !bytes.Equal(evidence.Line(&it), line) {
			t.Errorf("%s parsed as %s", line, evidence.Line(&it))
		}
	})
}

func BenchmarkLink(b *testing.B) {
	e := evidence.Entry{
		Type: evidence.ExecutedOK, At: noon, Decision: "first_seen", Executed: true, CommandID: "cmd_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f",
		SubmittedID: "cmd_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f", Key: strings.Repeat("ab", 32), Command: "invoice.refund", Actor: "actor-1",
		Channel: "http", Fingerprint: evidence.Genesis, OutcomeRef: "out_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f",
		OutcomeStatus: "executed", OutcomeDigest: evidence.Genesis,
	}
	head := evidence.Head{Tenant: "ten_a", Seq: 1, Hash: evidence.Genesis}
	b.ReportAllocs()
	for b.Loop() {
		it, err := evidence.Link(head, "ten_a", e)
		if err != nil {
			b.Fatal(err)
		}
		head = it.Head()
	}
}
