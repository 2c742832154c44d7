package profile

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// benchBody is a JSON object of 1 KiB as producers send them: texts mostly, some numbers, some nesting.
func benchBody() []byte {
	item := `{"sku":"A-1009-BLUE","title":"Blue widget, large","quantity":3,"price":{"amount":1299,"currency":"EUR"},"tags":["new","fragile"]}`
	body := `{"order_id":"ord_01J8ZQ4T7N5W","customer":"cus_9f4k7q2m","total":12.99,"paid":true,"note":"` + strings.Repeat("leave it at the door ", 14) +
		`","items":[` + strings.Join([]string{item, item, item, item}, ",") + `]}`
	return []byte(body)
}

// BenchmarkRenderSign is what choosing a dialect costs: rendering and signing one attempt, beside each other.
func BenchmarkRenderSign(b *testing.B) {
	for _, format := range []string{godwit.FormatRaw, godwit.FormatOJS, godwit.FormatCybercube} {
		for _, name := range Names() {
			b.Run(fmt.Sprintf("%s/%s", format, name), func(b *testing.B) {
				p, signer := signerOf(b, name)
				m := message(format, benchBody())
				target, _ := url.Parse("https://receiver.example/hook")
				b.SetBytes(int64(len(m.Event.Body)))
				b.ReportAllocs()
				for b.Loop() {
					header, body := p.Render(m)
					r := &http.Request{Method: http.MethodPost, URL: target, Host: target.Host, Header: header}
					if err := signer.Sign(r, body, now); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func signerOf(t testing.TB, name string) (Profile, Signer) {
	t.Helper()
	p, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	key, err := p.NewKey(p.Algorithms()[0])
	if err != nil {
		t.Fatal(err)
	}
	signer, err := p.NewSigner([]SigningKey{{ID: "sec_1", Algorithm: p.Algorithms()[0], Secret: key.Secret}})
	if err != nil {
		t.Fatal(err)
	}
	return p, signer
}

// BenchmarkReadJSON is what it takes to know that a body is a JSON object.
func BenchmarkReadJSON(b *testing.B) {
	body := benchBody()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if readJSON(body) == nil {
			b.Fatal("no JSON")
		}
	}
}
