package profile

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// vectorFile is one of spec/vectors; see the README there.
type vectorFile struct {
	Fields map[string]string
	Sign   []struct {
		Name, Secret, Public, ID string
		Timestamp                int64
		body
		Signature string
		Never     []string
	}
	Verify []struct {
		Name      string
		Keys      []string
		Now       int64
		ID        string
		Timestamp string
		Signature string
		body
		Valid bool
	}
}

type body struct {
	Body       string
	BodyBase64 []byte `json:"body_base64"`
}

func (b body) bytes() []byte {
	if b.BodyBase64 != nil {
		return b.BodyBase64
	}
	return []byte(b.Body)
}

func readVectors(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "spec", "vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestTextSecretsSignAsTheVectorsSay(t *testing.T) {
	for name, ids := range map[string][]string{
		"ojs":       {"OJS-SIG-2", "OJS-SIG-3", "OJS-SIG-4", "OJS-SIG-5"},
		"cybercube": {"CCW-SIG-2", "CCW-SIG-3", "CCW-SIG-4", "CCW-SIG-16"},
	} {
		t.Run(name, func(t *testing.T) {
			trace.Covers(t, ids...)
			var file vectorFile
			readVectors(t, name+"-signatures.json", &file)
			p, err := Lookup(name)
			if err != nil || len(file.Sign) < 5 {
				t.Fatalf("%d vectors, %v", len(file.Sign), err)
			}
			for _, v := range file.Sign {
				if got := SignSHA256(v.bytes(), v.Secret, v.Timestamp); got != v.Signature {
					t.Errorf("%s: signed %s, want %s", v.Name, got, v.Signature)
				}
				key, err := p.ImportKey(godwit.AlgorithmHMAC, v.Secret)
				if err != nil {
					t.Fatalf("%s: import secret: %v", v.Name, err)
				}
				h := sign(t, p, http.Header{}, v.bytes(), time.Unix(v.Timestamp, 0), key)
				if got := h.Get(file.Fields["signature"]); got != v.Signature || slices.Contains(v.Never, got) {
					t.Errorf("%s: %s is %s, want %s", v.Name, file.Fields["signature"], got, v.Signature)
				}
				if got := h.Get(file.Fields["timestamp"]); got != itoa(v.Timestamp) {
					t.Errorf("%s: %s is %s", v.Name, file.Fields["timestamp"], got)
				}
			}
		})
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// sign signs a request with keys in the order given.
func sign(t *testing.T, p Profile, h http.Header, body []byte, at time.Time, keys ...KeyMaterial) http.Header {
	t.Helper()
	var list []SigningKey
	for i, k := range keys {
		algorithm := godwit.AlgorithmHMAC
		if k.Public != nil {
			algorithm = godwit.AlgorithmEd25519
		}
		list = append(list, SigningKey{ID: string(rune('a' + i)), Algorithm: algorithm, Secret: k.Secret})
	}
	signer, err := p.NewSigner(list)
	if err != nil {
		t.Fatal(err)
	}
	if got := signer.KeyIDs(); len(got) != len(keys) || got[0] != "a" {
		t.Errorf("signs with %v", got)
	}
	r := &http.Request{Method: http.MethodPost, Header: h}
	if err := signer.Sign(r, body, at); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestSignaturesStandInTheOrderOfTheKeys(t *testing.T) {
	payload := []byte(`{"a":1}`)
	for _, name := range []string{"ojs", "cybercube"} {
		p, _ := Lookup(name)
		newer, older := newTextSecret(), newTextSecret()
		h := sign(t, p, http.Header{}, payload, now, newer, older)
		field := map[string]string{"ojs": "X-OJS-Signature", "cybercube": "X-Webhook-Signature"}[name]
		want := SignSHA256(payload, newer.Display, now.Unix()) + "," + SignSHA256(payload, older.Display, now.Unix())
		if got := h.Get(field); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestStandardWebhooksSignAsTheVectorsSay(t *testing.T) {
	var file vectorFile
	readVectors(t, "standard-webhooks-signatures.json", &file)
	if len(file.Sign) < 5 || !strings.Contains(file.Sign[0].Signature, "v1,") || !strings.Contains(file.Sign[1].Signature, "v1a,") {
		t.Fatal("the public vectors are missing")
	}
	p := standardWebhooks{}
	for _, v := range file.Sign {
		algorithm := godwit.AlgorithmHMAC
		if v.Public != "" {
			algorithm = godwit.AlgorithmEd25519
		}
		key, err := p.ImportKey(algorithm, v.Secret)
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		if v.Public != "" && key.Display != v.Public {
			t.Errorf("%s: shows %s, want %s", v.Name, key.Display, v.Public)
		}
		h := sign(t, p, http.Header{fieldSWID: {v.ID}}, v.bytes(), time.Unix(v.Timestamp, 0), key)
		if got := h.Get("webhook-signature"); got != v.Signature {
			t.Errorf("%s: signed %s, want %s", v.Name, got, v.Signature)
		}
		if got := h.Get("webhook-timestamp"); got != itoa(v.Timestamp) {
			t.Errorf("%s: time %s", v.Name, got)
		}
	}
}

// The official library is the judge of what the profile sends.
func TestOfficialLibraryVerifies(t *testing.T) {
	p := standardWebhooks{}
	for name, payload := range map[string][]byte{"json": []byte(`{"type":"a.b"}`), "bytes": {0, 255, 254}, "nothing": {}} {
		newer, err := p.NewKey(godwit.AlgorithmHMAC)
		if err != nil {
			t.Fatal(err)
		}
		older, _ := p.ImportKey(godwit.AlgorithmHMAC, "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 24)))
		asymmetric, _ := p.NewKey(godwit.AlgorithmEd25519)
		m := message(godwit.FormatRaw, payload)
		h, sent := p.Render(m)
		at := time.Now() // the library looks at the clock itself
		sign(t, p, h, sent, at, newer, asymmetric, older)
		for _, secret := range []string{newer.Display, older.Display} {
			judge, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := judge.Verify(payload, h); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := judge.Verify(append([]byte("x"), payload...), h); err == nil {
				t.Errorf("%s: another body was taken", name)
			}
		}
		if n := len(strings.Fields(h.Get("webhook-signature"))); n != 3 {
			t.Errorf("%s: %d signatures", name, n)
		}
	}
}

// The library's own refusals agree with what the vectors say, so that receivers can be built against them.
func TestVectorsAgreeWithTheOfficialLibrary(t *testing.T) {
	var file vectorFile
	readVectors(t, "standard-webhooks-signatures.json", &file)
	checked := 0
	for _, v := range file.Verify {
		if !strings.HasPrefix(v.Keys[0], "whsec_") || v.Now != 1614265330 {
			continue // it knows no v1a, and its clock cannot be set
		}
		judge, err := standardwebhooks.NewWebhook(v.Keys[0])
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{"Webhook-Id": {v.ID}, "Webhook-Timestamp": {v.Timestamp}, "Webhook-Signature": {v.Signature}}
		if err := judge.VerifyIgnoringTimestamp(v.bytes(), h); (err == nil) != v.Valid {
			t.Errorf("%s: %v, want valid %v", v.Name, err, v.Valid)
		}
		checked++
	}
	if checked < 10 {
		t.Errorf("only %d vectors were checked", checked)
	}
}

var publicID = regexp.MustCompile(`^WEB-[A-HJ-NP-Z2-9]{6}-[A-HJ-NP-Z2-9]$`)

func TestPublicIDs(t *testing.T) {
	trace.Covers(t, "CCW-API-4")
	var file struct {
		Codes  []struct{ Entity, Code, ID string }
		Events []struct{ UUID, Base32 string }
	}
	readVectors(t, "public-ids.json", &file)
	for _, v := range file.Codes {
		if got := FormatCode(v.Entity, v.Code); got != v.ID {
			t.Errorf("%s %s: %s, want %s", v.Entity, v.Code, got, v.ID)
		}
	}
	for _, v := range file.Events {
		id, err := godwit.ParseEventID(v.UUID)
		if err != nil {
			t.Fatal(err)
		}
		e := &godwit.Event{ID: id}
		if OJSEventID(e) != v.UUID || CybercubeEventID(e) != v.Base32 {
			t.Errorf("%s: %s and %s", v.UUID, OJSEventID(e), CybercubeEventID(e))
		}
		if back, err := godwit.ParseEventBase32(v.Base32[4:]); err != nil || back != id {
			t.Errorf("%s read as %v: %v", v.Base32, back, err)
		}
	}
	if len(file.Codes) < 6 || len(file.Events) < 3 {
		t.Error("vectors are missing")
	}
	for range 1000 {
		if id := FormatCode(CodeEndpoint, NewCode()); !publicID.MatchString(id) {
			t.Fatalf("%s", id)
		}
	}
}
