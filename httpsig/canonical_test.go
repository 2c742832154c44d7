package httpsig

import (
	"net/http"
	"reflect"
	"slices"
	"testing"
)

// canonicalSeeds are fields in canonical form, and near misses.
var canonicalSeeds = []struct {
	input, signature string
	canonical        bool
}{
	{`sig1=("@method" "content-digest");created=1800000000;keyid="k";nonce="n"`, `sig1=:AAAA:`, true},
	{`a=();created=1, b=("@path");keyid="k/e";alg="ed25519";tag="t";expires=2`, `b=:AA==:, a=::`, true},
	{`sig1=("x" "y-z");keyid="k"`, `other=:AAAA:, sig1=:AAAA:`, true},
	{`sig1=("x"  "y");keyid="k"`, `sig1=:AAAA:`, false},
	{`sig1=("x" );keyid="k"`, `sig1=:AAAA:`, false},
	{`sig1=( "x");keyid="k"`, `sig1=:AAAA:`, false},
	{`sig1=("x";sf);keyid="k"`, `sig1=:AAAA:`, false},
	{`sig1=("x" "x");keyid="k"`, `sig1=:AAAA:`, false},
	{`sig1=("X");keyid="k"`, `sig1=:AAAA:`, false},
	{`sig1=("@nonsense");keyid="k"`, `sig1=:AAAA:`, false},
	{`sig1=("x"); keyid="k"`, `sig1=:AAAA:`, false},
	{`sig1=("x");keyid="k";keyid="l"`, `sig1=:AAAA:`, false},
	{`sig1=("x");created=01`, `sig1=:AAAA:`, false},
	{`sig1=("x");created=1.5`, `sig1=:AAAA:`, false},
	{`sig1=("x");created=-1`, `sig1=:AAAA:`, false},
	{`sig1=("x");created="1"`, `sig1=:AAAA:`, false},
	{`sig1=("x");created=1;created=2`, `sig1=:AAAA:`, false},
	{`sig1=("x");keyid="a\"b"`, `sig1=:AAAA:`, false},
	{`sig1=("x");keyid=""`, `sig1=:AAAA:`, false},
	{`sig1=("x");keyid=k`, `sig1=:AAAA:`, false},
	{`sig1=("x");own=1`, `sig1=:AAAA:`, false},
	{`sig1=("x");own`, `sig1=:AAAA:`, false},
	{`sig1=("x"), sig1=("y")`, `sig1=:AAAA:`, false},
	{`sig1=("x"),sig2=("y")`, `sig1=:AAAA:, sig2=:AAAA:`, false},
	{`sig1=("x"), `, `sig1=:AAAA:`, false},
	{`sig1=("x")`, `sig1=:AAAA:, sig1=:BBBB:`, false},
	{`sig1=("x")`, `sig2=:AAAA:`, false},
	{`sig1=("x")`, `sig1=:A:`, false},
	{`sig1=("x")`, `sig1=:AAAA`, false},
	{`sig1=("x")`, `sig1=:AAAA:;p`, false},
	{`sig1=("x")`, `sig1="AAAA"`, false},
	{`sig1="x"`, `sig1=:AAAA:`, false},
	{`Sig1=("x")`, `Sig1=:AAAA:`, false},
	{``, ``, false},
}

func TestCanonical(t *testing.T) {
	for _, c := range canonicalSeeds {
		header := http.Header{inputField: {c.input}, signatureField: {c.signature}}
		if _, ok := canonicalSignatures(header, nil); ok != c.canonical {
			t.Errorf("%s, %s: canonical is %t", c.input, c.signature, ok)
		}
		sameAsParsed(t, header)
	}
	two := http.Header{inputField: {`a=("x")`, `b=("x")`}, signatureField: {`a=:AAAA:, b=:AAAA:`}}
	if _, ok := canonicalSignatures(two, nil); ok {
		t.Error("two lines are one field, but not in canonical form")
	}
}

// FuzzCanonical: canonical reads the same values as the parser for all structured fields.
func FuzzCanonical(f *testing.F) {
	for _, c := range canonicalSeeds {
		f.Add(c.input, c.signature)
	}
	f.Fuzz(func(t *testing.T, input, signature string) {
		sameAsParsed(t, http.Header{inputField: {input}, signatureField: {signature}})
	})
}

func sameAsParsed(t *testing.T, header http.Header) {
	t.Helper()
	known, err := parseComponents(DeliveryComponents())
	if err != nil {
		t.Fatal(err)
	}
	short, ok := canonicalSignatures(header, known)
	if !ok {
		return
	}
	long, err := parsedSignatures(header)
	if err != nil || len(long) != len(short) {
		t.Fatalf("%q: the parser finds %d, %v", header, len(long), err)
	}
	for i := range long {
		if err := long[i].parse(); err != nil {
			t.Fatalf("%q: the parser refuses it: %v", header, err)
		}
		long[i].input, long[i].value, long[i].parsed = nil, nil, true
		if !slices.Equal(long[i].components, short[i].components) {
			t.Fatalf("%q: components %+v, the parser has %+v", header, short[i].components, long[i].components)
		}
		short[i].components, long[i].components = nil, nil
		if !reflect.DeepEqual(long[i], short[i]) {
			t.Fatalf("%q: %+v, the parser has %+v", header, short[i], long[i])
		}
	}
}
