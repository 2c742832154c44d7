package management

import (
	"net/http"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// A custom header cannot replace a header of a profile, in particular the signature.
func TestHeadersOfProfilesAreReserved(t *testing.T) {
	now := time.Now()
	message := profile.Message{
		Event:    &godwit.Event{ID: godwit.NewEventID(now), Type: "a.b", Key: "key", ContentType: "application/json", Body: []byte("{}"), CreatedAt: now},
		Delivery: &godwit.Delivery{ID: godwit.NewDeliveryID(now), Run: godwit.Run{Attempts: 1, FirstAt: now}},
		Attempt:  2, ID: godwit.NewAttemptID(now), Endpoint: &godwit.Endpoint{}, Account: profile.NewCode(),
		Budget: profile.Budget{Limit: 10, Remaining: 9, Reset: now},
	}
	for _, name := range profile.Names() {
		p, err := profile.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, algorithm := range p.Algorithms() {
			key, err := p.NewKey(algorithm)
			if err != nil {
				t.Fatal(err)
			}
			signer, err := p.NewSigner([]profile.SigningKey{{ID: "k", Algorithm: algorithm, Secret: key.Secret}})
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequest(http.MethodPost, "https://receiver.example/", nil)
			if err != nil {
				t.Fatal(err)
			}
			var body []byte
			r.Header, body = p.Render(message)
			if err := signer.Sign(r, body, now); err != nil {
				t.Fatal(err)
			}
			for header := range r.Header {
				if checkHeaders(map[string]string{header: "x"}, nil) == nil {
					t.Errorf("profile %s: %s can be replaced", name, header)
				}
			}
		}
	}
}
