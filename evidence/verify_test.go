package evidence_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/trace"
)

var (
	testKey  = ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	otherKey = ed25519.NewKeyFromSeed([]byte(strings.Repeat("o", ed25519.SeedSize)))
)

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// chain is items of a tenant, every fourth a checkpoint.
func chain(t testing.TB, n int) []evidence.Item {
	var items []evidence.Item
	head := evidence.Head{Tenant: "ten_a"}
	for i := 1; i <= n; i++ {
		at := noon.Add(time.Duration(i) * time.Second)
		e := evidence.Entry{Type: evidence.Observation, At: at, Decision: "duplicate_replayed", CommandID: "cmd_1", SubmittedID: fmt.Sprintf("cmd_%d", i),
			Key: "k1", OutcomeStatus: "executed", Actor: "Zoë\n"}
		if i%4 == 0 {
			c, err := evidence.Sign(testKey, items[i-3].Head(), at)
			if err != nil {
				t.Fatal(err)
			}
			e = c.Entry(at)
		}
		it := link(t, head, e)
		items = append(items, it)
		head = it.Head()
	}
	return items
}

func export(t testing.TB, key ed25519.PrivateKey, head evidence.Head, from int64, items ...evidence.Item) []byte {
	t.Helper()
	var file bytes.Buffer
	x, err := evidence.NewExporter(&file, key, "ten_a", head, from, noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Append(items...); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil && !errors.Is(err, evidence.ErrIncomplete) {
		t.Fatal(err)
	}
	return file.Bytes()
}

func exported(t testing.TB, n int) []byte {
	items := chain(t, n)
	return export(t, testKey, items[n-1].Head(), 1, items...)
}

var pinned = evidence.Options{Keys: []ed25519.PublicKey{public(testKey)}}

func TestAWholeChainHolds(t *testing.T) {
	file := exported(t, 9)
	for name, o := range map[string]evidence.Options{"pinned": pinned, "not pinned": {}} {
		var seen []int64
		o.Item = func(line int64, it *evidence.Item) error {
			if line != it.Seq+1 {
				t.Errorf("item %d on line %d", it.Seq, line)
			}
			seen = append(seen, it.Seq)
			return nil
		}
		r, err := evidence.Verify(iotest.OneByteReader(bytes.NewReader(file)), o)
		if err != nil || r.Broken != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Items != 9 || len(seen) != 9 || r.From != 1 || r.To != 9 || r.Tenant != "ten_a" || r.Checkpoints != 2 || r.Covered != 6 {
			t.Errorf("%s: %+v", name, r)
		}
		if r.Totals.Decisions["duplicate_replayed"] != 7 || r.Totals.Types[evidence.Signed] != 2 {
			t.Errorf("%s: totals %+v", name, r.Totals)
		}
		if r.Pinned != (name == "pinned") || (len(r.Notes()) == 0) != r.Pinned {
			t.Errorf("%s: pinned %v, notes %q", name, r.Pinned, r.Notes())
		}
	}
}

func TestAnEmptyChainHolds(t *testing.T) {
	r, err := evidence.Verify(bytes.NewReader(export(t, testKey, evidence.Head{}, 1)), pinned)
	if err != nil || r.Items != 0 || r.To != 0 || r.ToHash != evidence.Genesis {
		t.Errorf("%+v, %v", r, err)
	}
}

// Whatever byte is changed, put in or taken out, the file no longer holds, and the line where that was done is named.
func TestEveryChangedByteIsFoundAndLocated(t *testing.T) {
	trace.Covers(t, "IDS-EVD-8")
	first := link(t, evidence.Head{}, evidence.Entry{Type: evidence.ExecutedOK, At: noon, Decision: "first_seen", Executed: true, Key: "k1", Actor: "Zoë\n"})
	c, err := evidence.Sign(testKey, first.Head(), noon)
	if err != nil {
		t.Fatal(err)
	}
	second := link(t, first.Head(), c.Entry(noon))
	third := link(t, second.Head(), evidence.Entry{Type: evidence.Dead, At: noon, ResponseStatus: 410})
	file := export(t, testKey, third.Head(), 1, first, second, third)
	if _, err := evidence.Verify(bytes.NewReader(file), pinned); err != nil {
		t.Fatal(err)
	}
	changed := make([]byte, 0, len(file)+1)
	line := int64(1)
	for i, was := range file {
		changed = append(changed[:0], file...)
		changed[i] ^= 1 << (i % 8)
		expectBroken(t, changed, line, "bit %d of byte %d (%q) flipped", i%8, i, was)
		changed = append(append(changed[:0], file[:i]...), file[i+1:]...)
		expectBroken(t, changed, line, "byte %d (%q) taken out", i, was)
		b, where := []byte{'\n', was, ' ', '0'}[i%4], line
		if b == '\n' && was == '\n' {
			where++ // the line is whole; a blank one follows it
		}
		changed = append(append(append(changed[:0], file[:i]...), b), file[i:]...)
		expectBroken(t, changed, where, "%q put in before byte %d (%q)", b, i, was)
		if i%16 == 0 || was == '\n' || i > 0 && file[i-1] == '\n' {
			expectBroken(t, file[:i], line, "cut off before byte %d", i)
		}
		if was == '\n' {
			line++
		}
	}
	for _, b := range []byte("\n {x\x00") {
		expectBroken(t, append(slices.Clone(file), b), line, "%q put at the end", b)
	}
}

func expectBroken(t *testing.T, file []byte, line int64, format string, args ...any) {
	t.Helper()
	r, err := evidence.Verify(bytes.NewReader(file), pinned)
	var broken *evidence.Broken
	if !errors.As(err, &broken) || r.Broken != broken {
		t.Fatalf("%s: not found: %v", fmt.Sprintf(format, args...), err)
	}
	if broken.Line != line || broken.Detail == "" || broken.Kind == "" || (line > 1 && broken.Seq != line-1 && broken.Kind != evidence.Trailing) {
		t.Fatalf("%s, on line %d: found at %+v", fmt.Sprintf(format, args...), line, broken)
	}
}

func TestTheFirstBrokenLinkIsNamed(t *testing.T) {
	items := chain(t, 8)
	head := items[7].Head()
	rewritten := func(i int, change func(*evidence.Item)) []evidence.Item {
		c := slices.Clone(items)
		change(&c[i])
		c[i].Hash = c[i].Sum()
		return c
	}
	// relinked is the chain as an attacker without the key would rewrite it from an item on.
	relinked := func(from int) []evidence.Item {
		c := slices.Clone(items[:from])
		for _, it := range items[from:] {
			e := it.Entry
			if e.Type != evidence.Signed {
				e.Actor = "mallory"
			}
			c = append(c, link(t, c[len(c)-1].Head(), e))
		}
		return c
	}
	foreign, err := evidence.Link(evidence.Head{Seq: 2, Hash: items[1].Hash}, "ten_b", full())
	if err != nil {
		t.Fatal(err)
	}
	forged := relinked(2)
	file := export(t, testKey, head, 1, items...)
	lines := bytes.SplitAfter(file, []byte("\n"))
	otherLines := bytes.SplitAfter(export(t, otherKey, head, 1, items...), []byte("\n"))
	otherFormat := bytes.Replace(file, []byte("godwit-evidence/1"), []byte("godwit-evidence/2"), 1)
	cases := map[string]struct {
		file []byte
		line int64
		kind evidence.Kind
	}{
		"a stored text changed":           {export(t, testKey, head, 1, edited(items, 3, func(it *evidence.Item) { it.Reason = "x" })...), 5, evidence.BadHash},
		"a stored text and hash changed":  {export(t, testKey, head, 1, rewritten(2, func(it *evidence.Item) { it.Reason = "x" })...), 5, evidence.BadPrev},
		"the last made anew":              {export(t, testKey, head, 1, rewritten(7, func(it *evidence.Item) { it.Checkpoint = nil; it.Type = "x" })...), 9, evidence.BadEnd},
		"one taken out":                   {export(t, testKey, head, 1, slices.Delete(slices.Clone(items), 2, 3)...), 4, evidence.Gap},
		"the last taken out":              {export(t, testKey, head, 1, items[:7]...), 9, evidence.Truncated},
		"one twice":                       {export(t, testKey, head, 1, slices.Insert(slices.Clone(items), 2, items[1])...), 4, evidence.Repeated},
		"two exchanged":                   {export(t, testKey, head, 1, append([]evidence.Item{items[1], items[0]}, items[2:]...)...), 2, evidence.Gap},
		"one of another tenant":           {export(t, testKey, head, 1, append([]evidence.Item{items[0], items[1], foreign}, items[3:]...)...), 4, evidence.ForeignTenant},
		"made anew, checkpoints kept":     {export(t, testKey, forged[7].Head(), 1, forged...), 5 + 4, evidence.BadCheckpoint},
		"checkpoint's signature":          {export(t, testKey, head, 1, rewritten(3, badSignature)...), 5, evidence.BadCheckpoint},
		"checkpoint by another":           {export(t, testKey, head, 1, rewritten(3, signedByOther)...), 5, evidence.BadCheckpoint},
		"checkpoint of itself":            {export(t, testKey, head, 1, rewritten(3, func(it *evidence.Item) { c := *it.Checkpoint; c.Seq = 4; it.Checkpoint = &c })...), 5, evidence.BadCheckpoint},
		"checkpoint's time":               {export(t, testKey, head, 1, rewritten(3, func(it *evidence.Item) { it.At = it.At.Add(time.Microsecond) })...), 5, evidence.BadCheckpoint},
		"another key":                     {bytes.Join(otherLines, nil), 1, evidence.BadKey},
		"the header of another key":       {bytes.Join(append(otherLines[:1:1], lines[1:]...), nil), 1, evidence.BadKey},
		"another format":                  {otherFormat, 1, evidence.BadFormat},
		"nothing":                         {nil, 1, evidence.Truncated},
		"a blank line":                    {[]byte("\n"), 1, evidence.BadHeader},
		"no header":                       {bytes.Join(lines[1:], nil), 1, evidence.BadFormat},
		"the header twice":                {bytes.Join(append(lines[:1:1], lines...), nil), 2, evidence.BadLine},
		"the header of another end":       {append(slices.Clone(bytes.SplitAfter(export(t, testKey, items[3].Head(), 1, items...), []byte("\n"))[0]), bytes.Join(lines[1:], nil)...), 6, evidence.Trailing},
		"another part":                    {append(slices.Clone(bytes.SplitAfter(export(t, testKey, head, 3, items[2:]...), []byte("\n"))[0]), bytes.Join(lines[1:], nil)...), 2, evidence.Repeated},
		"Windows line ends":               {bytes.ReplaceAll(file, []byte("\n"), []byte("\r\n")), 1, evidence.BadHeader},
		"Windows line ends behind header": {append(slices.Clone(lines[0]), bytes.ReplaceAll(bytes.Join(lines[1:], nil), []byte("\n"), []byte("\r\n"))...), 2, evidence.BadLine},
		"no newline at the end":           {file[:len(file)-1], 9, evidence.NoNewline},
		"no newline behind the header":    {lines[0][:len(lines[0])-1], 1, evidence.NoNewline},
		"cut off":                         {file[:len(file)-10], 9, evidence.Truncated},
		"garbage behind":                  {append(slices.Clone(file), 0), 10, evidence.Trailing},
		"a line without end":              {append(slices.Clone(lines[0]), bytes.Repeat([]byte("a"), 3<<20)...), 2, evidence.LineTooLong},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := evidence.Verify(bytes.NewReader(c.file), pinned)
			var broken *evidence.Broken
			if !errors.As(err, &broken) || broken.Line != c.line || broken.Kind != c.kind {
				t.Errorf("got %v, want line %d and kind %s", err, c.line, c.kind)
			}
		})
	}
}

func edited(items []evidence.Item, i int, change func(*evidence.Item)) []evidence.Item {
	c := slices.Clone(items)
	change(&c[i])
	return c
}

func badSignature(it *evidence.Item) {
	c, _ := evidence.Sign(testKey, evidence.Head{Tenant: "ten_b", Seq: it.Checkpoint.Seq, Hash: it.Checkpoint.Hash}, it.At)
	it.Checkpoint = &c
}

func signedByOther(it *evidence.Item) {
	c, _ := evidence.Sign(otherKey, evidence.Head{Tenant: "ten_a", Seq: it.Checkpoint.Seq, Hash: it.Checkpoint.Hash}, it.At)
	it.Checkpoint = &c
}

func TestKeys(t *testing.T) {
	items := chain(t, 3)
	c, err := evidence.Sign(otherKey, items[2].Head(), noon)
	if err != nil {
		t.Fatal(err)
	}
	items = append(items, link(t, items[2].Head(), c.Entry(noon)))
	file := export(t, testKey, items[3].Head(), 1, items...)
	// Without pins a checkpoint by a former key cannot be checked, and that is said.
	r, err := evidence.Verify(bytes.NewReader(file), evidence.Options{})
	if err != nil || r.Unsigned != 1 || r.Checkpoints != 0 || len(r.Notes()) != 2 {
		t.Errorf("not pinned: %+v, %v, %q", r, err, r.Notes())
	}
	// With pins it has to be one of them.
	if _, err := evidence.Verify(bytes.NewReader(file), pinned); err == nil {
		t.Error("a checkpoint by a key that is not pinned was taken")
	}
	both := evidence.Options{Keys: []ed25519.PublicKey{public(otherKey), public(testKey)}}
	if r, err := evidence.Verify(bytes.NewReader(file), both); err != nil || r.Checkpoints != 1 || r.Covered != 3 {
		t.Errorf("both pinned: %+v, %v", r, err)
	}
	if _, err := evidence.Verify(bytes.NewReader(file), evidence.Options{Keys: []ed25519.PublicKey{nil}}); err == nil {
		t.Error("no key was taken for one")
	}
	if _, err := evidence.Verify(bytes.NewReader(file), evidence.Options{Tenant: "ten_b"}); err == nil {
		t.Error("another tenant's chain was taken")
	}
}

func TestAPartHoldsAndFitsWhatIsKnown(t *testing.T) {
	items := chain(t, 8)
	// Its first checkpoint covers item 2, which is not there; the second covers item 6.
	part := export(t, testKey, items[7].Head(), 4, items[3:]...)
	r, err := evidence.Verify(bytes.NewReader(part), pinned)
	if err != nil || r.From != 4 || r.Items != 5 || r.PrevHash != items[2].Hash || r.Unlinked != 1 || r.Checkpoints != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if len(r.Notes()) != 2 {
		t.Errorf("notes: %q", r.Notes())
	}
	for _, at := range []int{2, 3, 7} { // the one before the part, its first, its last
		o := pinned
		o.Known = []evidence.Head{items[at].Head()}
		if r, err := evidence.Verify(bytes.NewReader(part), o); err != nil || r.KnownMet != 1 {
			t.Errorf("known %d: %+v, %v", at+1, r, err)
		}
		o.Known[0].Hash = evidence.Genesis
		_, err := evidence.Verify(bytes.NewReader(part), o)
		var broken *evidence.Broken
		if !errors.As(err, &broken) || broken.Kind != evidence.BadKnown || broken.Line != int64(max(1, at-1)) {
			t.Errorf("known otherwise %d: %v", at+1, err)
		}
	}
	o := pinned
	o.Known = []evidence.Head{{Seq: 99, Hash: evidence.Genesis}}
	if r, err := evidence.Verify(bytes.NewReader(part), o); err != nil || len(r.Notes()) != 3 {
		t.Errorf("known beyond the file: %v, %q", err, r.Notes())
	}
	// The first file ends where the second begins, with nothing in it.
	none := export(t, testKey, items[7].Head(), 9)
	if r, err := evidence.Verify(bytes.NewReader(none), pinned); err != nil || r.Items != 0 || r.PrevHash != items[7].Hash {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCheckpointsFarBackAreNotCompared(t *testing.T) {
	const reach = 16
	head := evidence.Head{Tenant: "ten_a"}
	var items []evidence.Item
	add := func(e evidence.Entry) {
		items = append(items, link(t, head, e))
		head = items[len(items)-1].Head()
	}
	for range 40 {
		add(evidence.Entry{Type: evidence.Reserved, At: noon})
	}
	for _, of := range []int{40 - reach, 40 - reach + 2, 40} { // just out of reach, the last within, the one before
		c, err := evidence.Sign(testKey, items[of-1].Head(), noon)
		if err != nil {
			t.Fatal(err)
		}
		add(c.Entry(noon))
	}
	r, err := evidence.Verify(bytes.NewReader(export(t, testKey, head, 1, items...)), pinned.WithReach(reach))
	if err != nil || r.Unlinked != 1 || r.Checkpoints != 2 || r.Covered != 40 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestExporterRefusals(t *testing.T) {
	items := chain(t, 2)
	head := items[1].Head()
	for name, make := range map[string]func() (*evidence.Exporter, error){
		"no key": func() (*evidence.Exporter, error) {
			return evidence.NewExporter(io.Discard, nil, "ten_a", head, 1, noon)
		},
		"another tenant": func() (*evidence.Exporter, error) {
			return evidence.NewExporter(io.Discard, testKey, "ten_b", head, 1, noon)
		},
		"no tenant": func() (*evidence.Exporter, error) {
			return evidence.NewExporter(io.Discard, testKey, "", evidence.Head{}, 1, noon)
		},
		"from 0": func() (*evidence.Exporter, error) {
			return evidence.NewExporter(io.Discard, testKey, "ten_a", head, 0, noon)
		},
		"from beyond": func() (*evidence.Exporter, error) {
			return evidence.NewExporter(io.Discard, testKey, "ten_a", head, 4, noon)
		},
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	// What was appended to the chain since the head was read is left out.
	x, err := evidence.NewExporter(io.Discard, testKey, "ten_a", items[0].Head(), 1, noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(x.Append(items...), x.Close()); err != nil {
		t.Error(err)
	}
	if _, err := evidence.Sign(nil, head, noon); err == nil {
		t.Error("signed without a key")
	}
	if _, err := evidence.Sign(testKey, evidence.Head{}, noon); err == nil {
		t.Error("signed an empty chain")
	}
}

func TestReadErrorsAreNotBrokenLinks(t *testing.T) {
	file := exported(t, 3)
	wrong := errors.New("disk on fire")
	for n := 0; n <= len(file); n += 13 {
		r, err := evidence.Verify(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(wrong)), pinned)
		if !errors.Is(err, wrong) || r.Broken != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	stop := errors.New("enough")
	_, err := evidence.Verify(bytes.NewReader(file), evidence.Options{Item: func(int64, *evidence.Item) error { return stop }})
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func TestParsePublicKey(t *testing.T) {
	const encoded = "b7b9Ve+EVQ8Uyvcm0rLbQl2QwL4bpvUAsOhRdSwkVm0=" // base64 of some 32 bytes
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := evidence.MarshalPublicKey(raw)
	if err != nil || string(pem) != "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA"+encoded+"\n-----END PUBLIC KEY-----\n" {
		t.Errorf("as PEM: %s, %v", pem, err)
	}
	told := fmt.Sprintf(`{"algorithm":"ed25519","key_id":%q,"public_key":%q}`, evidence.KeyID(raw), encoded)
	for _, text := range []string{encoded, "b7b9Ve-EVQ8Uyvcm0rLbQl2QwL4bpvUAsOhRdSwkVm0\n", string(pem), told + "\n", fmt.Sprintf(`{"public_key":%q}`, encoded)} {
		if k, err := evidence.ParsePublicKey(text); err != nil || !k.Equal(ed25519.PublicKey(raw)) {
			t.Errorf("%q: %x, %v", text, k, err)
		}
	}
	for _, text := range []string{"", "b7b9", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", strings.Repeat("=", 44), "{", "{}", string(pem) + string(pem),
		strings.Replace(told, "sha256:", "sha256:0", 1), strings.Replace(told, "ed25519", "rsa", 1), `{"public_key":"b7b9"}`} {
		if k, err := evidence.ParsePublicKey(text); err == nil {
			t.Errorf("%q was taken as %x", text, k)
		}
	}
}

// The file in testdata pins the format: what was exported once has to hold for ever.
func TestAFileOfTheFirstVersionHolds(t *testing.T) {
	file, err := os.ReadFile("testdata/chain.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	r, err := evidence.Verify(bytes.NewReader(file), pinned)
	if err != nil || r.Items != 4 || r.Checkpoints != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if !bytes.Equal(file, exported(t, 4)) {
		t.Error("the same chain is exported in other bytes")
	}
}

func FuzzVerify(f *testing.F) {
	file := exported(f, 4)
	f.Add(0, []byte("x"), 1)
	f.Add(len(file)-1, []byte{}, 1)
	f.Add(600, []byte("\n"), 0)
	f.Fuzz(func(t *testing.T, at int, put []byte, drop int) {
		if at < 0 || at > len(file) || drop < 0 || drop > len(file)-at {
			return
		}
		changed := slices.Concat(file[:at], put, file[at+drop:])
		_, err := evidence.Verify(bytes.NewReader(changed), pinned)
		if same := bytes.Equal(changed, file); same != (err == nil) {
			t.Errorf("%d bytes at %d replaced by %q: %v", drop, at, put, err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	file := exported(b, 1000)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := evidence.Verify(bytes.NewReader(file), pinned); err != nil {
			b.Fatal(err)
		}
	}
}
