package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/httpsig"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestCapturedRequestsStayWhatTheyWere: if the signature does not cover the key, a captured attempt cannot become another
// event under another key. A retry with the same key is accepted in the same second.
func TestCapturedRequestsStayWhatTheyWere(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-SEC-THR-2", "EDS-INT-12")
		r := newRig(t, o)
		r.Endpoint(r.sink.URL("/to"))
		ojs := r.Source("ojs", apptest.Fields{"scheme": "ojs"})
		adopting := r.Source("adopting", apptest.Fields{"scheme": "ojs", "adopt": true})
		sign := func(s source, at time.Time) func(*http.Request, []byte) {
			return func(q *http.Request, body []byte) {
				mac := hmac.New(sha256.New, []byte(s.Issued.Secret))
				fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
				q.Header.Set("X-Ojs-Timestamp", fmt.Sprint(at.Unix()))
				q.Header.Set("X-Ojs-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
			}
		}
		now := r.Clock.Now()
		attempt := func(s source, k, id string, at time.Time) answer {
			return r.send(delivery{Path: s.Path, Key: k, Header: http.Header{"X-Ojs-Delivery-Id": {id}}, Sign: sign(s, at)})
		}
		first := r.want(attempt(ojs, key("one"), "d1", now), 200)
		if again := r.want(attempt(ojs, key("one"), "d1", now), 200); again.ID != first.ID {
			t.Errorf("%s and %s", first.ID, again.ID)
		}
		r.want(attempt(ojs, key("two"), "d1", now), 401)
		if got := r.rejections(ojs)[0]; got.Reason != "replayed" {
			t.Errorf("recorded as %+v", got)
		}
		r.want(attempt(ojs, key("two"), "d1", now.Add(time.Second)), 200) // signed for itself
		// The delivery id that a key is made of is not signed either.
		r.want(attempt(adopting, "", "d1", now), 200)
		r.want(attempt(adopting, "", "d1", now), 200)
		r.want(attempt(adopting, "", "d2", now), 401)
	})
}

// TestUnsignedFieldsSayNothing: if a signature covers fields, an uncovered field determines neither the type nor the
// delivery id.
func TestUnsignedFieldsSayNothing(t *testing.T) {
	trace.Covers(t, "EDS-SEC-THR-3")
	r := newRig(t, apptest.Options{})
	r.Endpoint(r.sink.URL("/to"))
	plain := r.Source("plain", apptest.Fields{"scheme": "eds", "event_type": apptest.Fields{}})
	adopting := r.Source("adopting", apptest.Fields{"scheme": "eds", "adopt": true, "settings": apptest.Fields{"delivery_header": "X-Delivery"}})
	signed := func(s source, fields ...string) func(*http.Request, []byte) {
		return func(q *http.Request, body []byte) {
			components := httpsig.DeliveryComponents()
			if q.Header.Get("Idempotency-Key") == "" {
				components = slices.DeleteFunc(components, func(c string) bool { return c == "idempotency-key" })
			}
			signer, err := httpsig.NewSigner(append(components, fields...)...)
			if err != nil {
				t.Fatal(err)
			}
			k, err := httpsig.NewHMACKey(s.Issued.ID, decode(t, s.Issued.Secret))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Content-Digest", httpsig.ContentDigest(body))
			if err := signer.SignRequest(q, httpsig.Params{Keys: []httpsig.Key{k}, Created: r.Clock.Now(), Nonce: nonce()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	event := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/a"}, "Ce-Type": {"com.example.thing"}}
	r.want(r.send(delivery{Path: plain.Path, Key: key("covered"), Header: event, Sign: signed(plain, "ce-type")}), 200)
	r.want(r.send(delivery{Path: plain.Path, Key: key("not covered"), Header: event, Sign: signed(plain, "ce-id")}), 400)
	id := http.Header{"X-Delivery": {"delivery-1"}}
	r.want(r.send(delivery{Path: adopting.Path, Header: id, Sign: signed(adopting, "x-delivery")}), 200)
	r.want(r.send(delivery{Path: adopting.Path, Header: id, Sign: signed(adopting)}), 400)
	// With a type of its own, a source does not need the event's.
	fixed := r.Source("fixed", apptest.Fields{"scheme": "eds"})
	r.want(r.send(delivery{Path: fixed.Path, Key: key("fixed"), Header: event, Sign: signed(fixed)}), 200)
}

// TestFieldsOfTheConnection: fields that Connection names are not forwarded, even if the source keeps them.
func TestFieldsOfTheConnection(t *testing.T) {
	r := newRig(t, apptest.Options{})
	r.Endpoint(r.sink.URL("/to"))
	s := r.Source("upstream", apptest.Fields{"keep_headers": []string{"X-Tenant", "X-Trace"}})
	r.want(r.send(delivery{Path: s.Path, Key: key("named"), Sign: bearer(s), Header: http.Header{
		"X-Tenant": {"acme"}, "X-Trace": {"1", "2"}, "Connection": {"close, x-tenant"}}}), 200)
	got := r.sink.WaitOn("/to", 1)[0].Header
	if got["X-Tenant"] != nil || !slices.Equal(got["X-Trace"], []string{"1", "2"}) {
		t.Errorf("went on: %v", got)
	}
	for _, name := range []string{"X_Api_Key", "X-Access-Key-Id", "X-Session", "Godwit-Via", "X-User-Credential", "Proxy-Thing", "Sec-Fetch-Mode"} {
		if a := r.Call(apptest.Call{Path: "/v1/sources", Body: apptest.Fields{"name": "keeps", "scheme": "bearer", "keep_headers": []string{name}}}); a.Status != 422 {
			t.Errorf("keeping %s: %d %s", name, a.Status, a.Body)
		}
	}
	for _, media := range []string{"json", "*/*", "text/", "text/plain; charset", ""} {
		r.want(r.send(delivery{Path: s.Path, Key: key("media"), Sign: bearer(s), Header: http.Header{"Content-Type": {media}}}), 415)
	}
}
