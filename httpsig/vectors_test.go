package httpsig

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
)

// The vectors are the RFCs' own; see spec/vectors/httpsig/README.md.

type vectorMessage struct {
	Method   string      `json:"method"`
	Scheme   string      `json:"scheme"`
	Target   string      `json:"target"`
	Status   int         `json:"status"`
	Fields   [][2]string `json:"fields"`
	Trailers [][2]string `json:"trailers"`
	Body     string      `json:"body"`
}

type vectorKey struct {
	ID         string    `json:"id"`
	Algorithm  Algorithm `json:"algorithm"`
	PublicPEM  string    `json:"public_pem"`
	PrivatePEM string    `json:"private_pem"`
	Secret     []byte    `json:"secret_base64"`
}

type vectorCase struct {
	Section        string   `json:"section"`
	Name           string   `json:"name"`
	Message        string   `json:"message"`
	Request        string   `json:"request"`
	Label          string   `json:"label"`
	Key            string   `json:"key"`
	Components     []string `json:"components"`
	SignatureInput string   `json:"signature_input"`
	Signature      string   `json:"signature"`
	Base           string   `json:"base"`
	Valid          bool     `json:"valid"`
}

type signatureVectors struct {
	Keys     []vectorKey              `json:"keys"`
	Messages map[string]vectorMessage `json:"messages"`
	Cases    []vectorCase             `json:"cases"`
}

func readVectors(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "spec", "vectors", "httpsig", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// incoming is the request as a server would have it.
func (v vectorMessage) incoming(t testing.TB) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), v.Method, "/", strings.NewReader(v.Body))
	if err != nil {
		t.Fatal(err)
	}
	req.RequestURI = v.Target
	if v.Scheme == "https" {
		req.TLS = &tls.ConnectionState{}
	}
	req.Header, req.Trailer = header(v.Fields), header(v.Trailers)
	req.Host = req.Header.Get("Host")
	req.Header.Del("Host")
	return req
}

func header(fields [][2]string) http.Header {
	h := http.Header{}
	for _, f := range fields {
		h.Add(f[0], f[1])
	}
	return h
}

// view returns the message that components are taken from. Responses occur only in these tests: the package's API is for
// requests.
func (v vectorMessage) view(t testing.TB, request *vectorMessage) message {
	t.Helper()
	if v.Status != 0 {
		m := message{status: v.Status, header: header(v.Fields), trailer: header(v.Trailers)}
		if request != nil {
			r := request.view(t, nil)
			m.request = &r
		}
		return m
	}
	m, err := requestMessage(v.incoming(t), "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (v *signatureVectors) related(c vectorCase) *vectorMessage {
	if request, ok := v.Messages[c.Request]; ok {
		return &request
	}
	return nil
}

func (v *signatureVectors) key(t testing.TB, id string) vectorKey {
	t.Helper()
	for _, k := range v.Keys {
		if k.ID == id {
			return k
		}
	}
	t.Fatalf("no key %q in the vectors", id)
	return vectorKey{}
}

// TestRFC9421Signatures builds the base of each case from the message and the
// fields, compares it byte by byte with the RFC's, and checks the RFC's signature
// over it with the platform's cryptography, whatever the algorithm.
func TestRFC9421Signatures(t *testing.T) {
	var vectors signatureVectors
	readVectors(t, "rfc9421-signatures.json", &vectors)
	for _, c := range vectors.Cases {
		t.Run(c.Section+" "+c.Name, func(t *testing.T) {
			m := vectors.Messages[c.Message].view(t, vectors.related(c))
			m.header.Set(inputField, c.SignatureInput)
			m.header.Set(signatureField, c.Signature)
			signatures, err := readSignatures(m.header, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			s := signatures[0]
			if err := s.parse(); err != nil {
				t.Fatal(err)
			}
			base, err := m.appendLines(nil, s.components)
			if err != nil {
				t.Fatal(err)
			}
			base = appendParamsLine(base, s.params)
			if c.Base != "" && string(base) != c.Base {
				t.Fatalf("signature base\n%s\nwant\n%s", base, c.Base)
			}
			if s.label != c.Label || s.keyID != c.Key {
				t.Errorf("label %q, key %q; want %q, %q", s.label, s.keyID, c.Label, c.Key)
			}
			if got := platformVerify(t, vectors.key(t, c.Key), base, s.signature); got != c.Valid {
				t.Errorf("signature valid: %v, want %v", got, c.Valid)
			}
		})
	}
}

// platformVerify checks a signature without this package.
func platformVerify(t testing.TB, key vectorKey, base, signature []byte) bool {
	t.Helper()
	if key.Algorithm == HMACSHA256 {
		mac := hmac.New(sha256.New, key.Secret)
		mac.Write(base)
		return hmac.Equal(mac.Sum(nil), signature)
	}
	switch public := parsePEM(t, key.PublicPEM, x509.ParsePKIXPublicKey).(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(public, base, signature)
	case *rsa.PublicKey:
		sum := sha512.Sum512(base)
		return rsa.VerifyPSS(public, crypto.SHA512, sum[:], signature, &rsa.PSSOptions{SaltLength: 64}) == nil
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(base)
		half := len(signature) / 2
		return ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:]))
	default:
		t.Fatalf("unexpected key type %T", public)
		return false
	}
}

func parsePEM(t testing.TB, text string, parse func([]byte) (any, error)) any {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		t.Fatal("not PEM")
	}
	key, err := parse(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// supported makes the package's key, for the algorithms that it has.
func (k vectorKey) supported(t testing.TB) (Key, bool) {
	t.Helper()
	var key Key
	var err error
	switch k.Algorithm {
	case HMACSHA256:
		key, err = NewHMACKey(k.ID, k.Secret)
	case Ed25519:
		key, err = NewEd25519Signer(k.ID, parsePEM(t, k.PrivatePEM, x509.ParsePKCS8PrivateKey).(ed25519.PrivateKey))
	default:
		return Key{}, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return key, true
}

// TestRFC9421SignAndVerify signs the cases of the two supported algorithms, which are deterministic, compares the fields
// with the RFC's byte by byte, and verifies them.
func TestRFC9421SignAndVerify(t *testing.T) {
	var vectors signatureVectors
	readVectors(t, "rfc9421-signatures.json", &vectors)
	ran := 0
	for _, c := range vectors.Cases {
		key, ok := vectors.key(t, c.Key).supported(t)
		if !ok {
			continue
		}
		ran++
		t.Run(c.Section+" "+c.Name, func(t *testing.T) {
			m := vectors.Messages[c.Message]
			if c.Valid {
				signer, err := NewSigner(c.Components...)
				if err != nil {
					t.Fatal(err)
				}
				req := m.incoming(t)
				if err := signer.SignRequest(req, Params{Keys: []Key{key}, Label: c.Label, Created: time.Unix(1618884473, 0)}); err != nil {
					t.Fatal(err)
				}
				if got := req.Header.Get(inputField); got != c.SignatureInput {
					t.Errorf("Signature-Input: %s\nwant %s", got, c.SignatureInput)
				}
				if got := req.Header.Get(signatureField); got != c.Signature {
					t.Errorf("Signature: %s\nwant %s", got, c.Signature)
				}
			}
			req := m.incoming(t)
			req.Header.Set(inputField, c.SignatureInput)
			req.Header.Set(signatureField, c.Signature)
			verified, err := Verify(req, []byte(m.Body), Options{
				KeyByID:            func(context.Context, string) (Key, error) { return key, nil },
				RequiredComponents: c.Components,
				Now:                func() time.Time { return time.Unix(1618884473, 0) },
			})
			if c.Valid && (err != nil || verified.Label != c.Label || verified.KeyID != c.Key || verified.Created.Unix() != 1618884473) {
				t.Errorf("verified %+v, %v", verified, err)
			}
			if !c.Valid && ReasonOf(err) != ReasonBadSignature {
				t.Errorf("error %v, want %s", err, ReasonBadSignature)
			}
		})
	}
	if ran != 8 {
		t.Errorf("%d cases ran, want B.2.5, B.2.6 and the six of B.4", ran)
	}
}

// TestRFC9421Components compares single lines of signature bases.
func TestRFC9421Components(t *testing.T) {
	structuredTypes["example-dict"] = dictionary // the RFC's example of a field "known by the application"
	t.Cleanup(func() { delete(structuredTypes, "example-dict") })
	var vectors struct {
		Cases []struct {
			Section string        `json:"section"`
			Message vectorMessage `json:"message"`
			Lines   []struct {
				Component string `json:"component"`
				Line      string `json:"line"`
			} `json:"lines"`
		} `json:"cases"`
	}
	readVectors(t, "rfc9421-components.json", &vectors)
	for _, c := range vectors.Cases {
		for _, line := range c.Lines {
			t.Run(fmt.Sprintf("%s %s", c.Section, line.Component), func(t *testing.T) {
				components, err := parseComponents([]string{line.Component})
				if err != nil {
					t.Fatal(err)
				}
				m := c.Message.view(t, nil)
				got, err := m.appendLines(nil, components)
				if err != nil {
					t.Fatal(err)
				}
				if string(got) != line.Line+"\n" {
					t.Errorf("got  %q\nwant %q", got, line.Line+"\n")
				}
			})
		}
	}
}

func TestRFC9530ContentDigest(t *testing.T) {
	var vectors struct {
		Cases []struct {
			Name  string `json:"name"`
			Body  string `json:"body"`
			Field string `json:"field"`
			Valid bool   `json:"valid"`
		} `json:"cases"`
	}
	readVectors(t, "rfc9530-content-digest.json", &vectors)
	for _, c := range vectors.Cases {
		t.Run(c.Name, func(t *testing.T) {
			err := VerifyContentDigest(http.Header{"Content-Digest": {c.Field}}, []byte(c.Body))
			if c.Valid != (err == nil) || !c.Valid && ReasonOf(err) != ReasonDigestMismatch {
				t.Errorf("verify: %v", err)
			}
			if c.Valid && strings.HasPrefix(c.Field, "sha-256=") && ContentDigest([]byte(c.Body)) != c.Field {
				t.Errorf("digest %s, want %s", ContentDigest([]byte(c.Body)), c.Field)
			}
		})
	}
}

// TestSerialisationMatchesLibrary compares the hand-written serialisation of parameters with the structured field library.
func TestSerialisationMatchesLibrary(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, 32)
	for _, text := range []string{"plain", `qu"ote`, `back\slash`, " spaces ", "~!#$%&'()*+,-./:;<=>?@[]^_`{|}"} {
		key, err := NewHMACKey(text, secret)
		if err != nil {
			t.Fatal(err)
		}
		p := Params{Created: time.Unix(1618884473, 0), Expires: time.Unix(1618884773, 0), Nonce: text, Tag: text, IncludeAlg: true}
		got, err := p.append([]byte("()"), key)
		if err != nil {
			t.Fatal(err)
		}
		list := httpsfv.InnerList{Params: httpsfv.NewParams()}
		list.Params.Add("created", int64(1618884473))
		list.Params.Add("expires", int64(1618884773))
		list.Params.Add("nonce", text)
		list.Params.Add("alg", "hmac-sha256")
		list.Params.Add("keyid", text)
		list.Params.Add("tag", text)
		want, err := httpsfv.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got, want := ContentDigest(nil), "sha-256=:"+base64.StdEncoding.EncodeToString(sha256.New().Sum(nil))+":"; got != want {
		t.Errorf("digest of nothing %s, want %s", got, want)
	}
}
