package command

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"golang.org/x/text/unicode/norm"
)

func TestExactNumber(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "0e999999999999999999999": "0", "-0.0e-7": "0",
		"1": "1", "1.0": "1", "10e-1": "1", "1e0000000000000000000000": "1", "100E-2": "1", "-1.50": "-1.5",
		"9007199254740992": "9007199254740992", "9007199254740994": "9007199254740994", "9007199254740993": "",
		"1e21": "1e+21", "1000000000000000000000": "1e+21", "123456789012345680000": "123456789012345680000",
		"123456789012345683968": "", "0.1": "0.1", "0.10000000000000001": "", "0.000001": "0.000001", "1e-7": "1e-7",
		"5e-324": "5e-324", "4.9e-324": "", "1e-400": "", "1e400": "", "-1e400": "", "1e99999999999999999999": "", "1e-99999999999999999999": "",
		"1.7976931348623157e308": "1.7976931348623157e+308",
	} {
		got, exact := exactNumber(text)
		if string(got) != want || exact != (want != "") {
			t.Errorf("%s: %q %v, want %q", text, got, exact, want)
		}
	}
}

func TestCanonicalKeepsApart(t *testing.T) {
	// Pairs that careless parsers treat as equal.
	for _, pair := range [][2]string{
		{`"1"`, `1`}, {`null`, `{}`}, {`[]`, `{}`}, {`""`, `null`}, {`{"a":null}`, `{}`}, {`"\u2028"`, `" "`}, {`"\ufb01"`, `"fi"`},
		{`"\u0000"`, `""`}, {`"\ufffd"`, `"?"`}, {`"\u212b "`, `"\u212b"`}, {`"</"`, `"<\\/"`},
	} {
		a, err := Canonical([]byte(pair[0]))
		b, err2 := Canonical([]byte(pair[1]))
		if err != nil || err2 != nil || bytes.Equal(a, b) {
			t.Errorf("%s and %s: %s and %s (%v, %v)", pair[0], pair[1], a, b, err, err2)
		}
	}
}

// shuffled writes a document with its members in another order, with white space and with escapes.
func shuffled(v any, r *rand.Rand, b *bytes.Buffer) {
	space := func() { b.WriteString([]string{"", " ", "\n\t", "\r\n"}[r.IntN(4)]) }
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		b.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			shuffled(name, r, b)
			space()
			b.WriteByte(':')
			space()
			shuffled(v[name], r, b)
			space()
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			shuffled(item, r, b)
			space()
		}
		b.WriteByte(']')
	case string:
		if r.IntN(2) == 0 {
			v = norm.NFD.String(v)
		}
		text, _ := json.Marshal(v)
		b.Write(text)
	default:
		text, _ := json.Marshal(v)
		b.Write(text)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, v := range readVectors(f).Keys {
		f.Add([]byte(v.Envelope), uint64(1))
	}
	for _, v := range readVectors(f).Refused {
		f.Add([]byte(v.Envelope), uint64(2))
	}
	for _, seed := range []string{`"\ud83d\ude00"`, `"\\ud83d"`, `"\\\ud83d"`, `"\ud83d\\ude00"`, `"\ud83d\u0041"`, ` -1.5e-3 `, `[[],{},[{}]]`, `"\u0344\u0345"`} {
		f.Add([]byte(seed), uint64(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		once, err := Canonical(text)
		if err != nil {
			return
		}
		if !json.Valid(once) || !norm.NFC.IsNormal(once) {
			t.Fatalf("%q is not canonical JSON", once)
		}
		twice, err := Canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q becomes %q (%v)", once, twice, err)
		}
		v, err := document(text)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		shuffled(v, rand.New(rand.NewPCG(seed, seed)), &b)
		other, err := Canonical(b.Bytes())
		if err != nil || !bytes.Equal(once, other) {
			t.Fatalf("%q, shuffled to %q, becomes %q (%v)", once, b.Bytes(), other, err)
		}
	})
}

func FuzzFold(f *testing.F) {
	for _, seed := range []string{"Straße", " A\u0345\u0301 ", "\u1fb3\u0301", "ΣΊΣΥΦΟΣ", "\u0130", "\u2003a\u00a0\tb", "\ufb03"} {
		f.Add(seed)
	}
	both := []*rule{{annotations: annotations{foldCase: true, foldSpace: true}}}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(`"`+text+`"`)) || norm.NFC.String(text) != text {
			return
		}
		once := folded(text, both)
		if twice := folded(once, both); twice != once || !norm.NFC.IsNormalString(once) {
			t.Fatalf("%q folds to %q, and that to %q", text, once, twice)
		}
	})
}
