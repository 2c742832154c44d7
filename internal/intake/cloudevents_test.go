package intake_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// ceDoors are the doors that take CloudEvents as their HTTP binding writes them.
var ceDoors = []string{"/v1/events", "/in"}

// postCloudEvent sends a request as it is: apptest's calls would add a Content-Type.
func (h *house) postCloudEvent(path string, header map[string]string, body string) (status int, text string) {
	h.t.Helper()
	token := h.producer
	if path == "/in" {
		path, token = h.source.Path, h.source.Issued.Secret
	}
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Idempotency-Key", quote(h.key()))
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// event is an event that was taken in, by the answer that its producer got.
func (h *house) event(answer string) (eventType, contentType string) {
	h.t.Helper()
	var receipt struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(answer), &receipt); err != nil {
		h.t.Fatalf("%v: %s", err, answer)
	}
	var event struct {
		Type        string `json:"type"`
		ContentType string `json:"content_type"`
	}
	h.Must(apptest.Call{Path: "/v1/events/" + receipt.ID}, &event)
	return event.Type, event.ContentType
}

// TestCloudEventTypes: one rule for the types of CloudEvents at every door. Slashes and colons separate segments; everything
// else must match the grammar, and the reserved types are refused in every spelling.
func TestCloudEventTypes(t *testing.T) {
	h := newHouse(t, apptest.Options{})
	h.Must(apptest.Call{Method: "PATCH", Path: "/v1/sources/" + h.source.ID, Body: `{"event_type":{"header":null}}`}, nil)
	for _, c := range []struct{ ceType, want string }{ // want is empty where the event is refused
		{"com.example.order.paid", "com.example.order.paid"},
		{"orders/create", "orders.create"},
		{"urn:example:order:paid", "urn.example.order.paid"},
		{"https://example.com/order", "https.example.com.order"},
		{"/orders/", "orders"},
		{"orders/./create", ""},
		{"order+paid", ""},
		{"webhook/dead", ""},
		{"godwit:alert:x", ""},
		{"///", ""},
	} {
		for _, door := range ceDoors {
			for _, structured := range []bool{false, true} {
				header := map[string]string{"Content-Type": "application/json", "Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/s", "Ce-Type": c.ceType}
				body := `{}`
				if structured {
					header = map[string]string{"Content-Type": "application/cloudevents+json"}
					body = fmt.Sprintf(`{"specversion":"1.0","id":"1","source":"/s","type":%q,"data":{}}`, c.ceType)
				}
				status, text := h.postCloudEvent(door, header, body)
				if taken := status == http.StatusAccepted; taken != (c.want != "") {
					t.Errorf("%s, structured %t, type %q: %d %s", door, structured, c.ceType, status, text)
					continue
				}
				if c.want == "" {
					continue
				}
				if got, _ := h.event(text); got != c.want {
					t.Errorf("%s, structured %t, type %q became %q, want %q", door, structured, c.ceType, got, c.want)
				}
			}
		}
	}
}

// TestCloudEventSchemas: the tenant's schemas judge the data of a CloudEvent, in both modes and at every door.
func TestCloudEventSchemas(t *testing.T) {
	h := newHouse(t, apptest.Options{})
	h.schema("order.paid", needsTotal)
	h.tenant(apptest.Fields{"event_validation": "known"})
	h.Must(apptest.Call{Method: "PATCH", Path: "/v1/sources/" + h.source.ID, Body: `{"event_type":{"header":null}}`}, nil)
	binary := map[string]string{"Content-Type": "application/json", "Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/s", "Ce-Type": "order.paid"}
	good, bad := order(`,"total":1`), order("")
	for _, door := range ceDoors {
		for _, c := range []struct {
			header map[string]string
			body   string
			want   int
		}{
			{binary, good, 202},
			{binary, bad, 422},
			{nil, `"data":` + good, 202},
			{nil, `"data":` + bad, 422},
			{nil, `"datacontenttype":"application/vnd.shop+json","data":` + good, 202},
			{nil, `"datacontenttype":"text/plain","data":` + good, 422},
			{nil, `"data_base64":"` + base64.StdEncoding.EncodeToString([]byte(good)) + `"`, 202},
			{nil, `"data_base64":"` + base64.StdEncoding.EncodeToString([]byte(bad)) + `"`, 422},
			{nil, `"data_base64":"?"`, 422},
			{nil, `"object":{"total":1}`, 422}, // an attribute, and no data
		} {
			header, body := c.header, c.body
			if header == nil {
				header, body = map[string]string{"Content-Type": "application/cloudevents+json"}, `{"specversion":"1.0","id":"1","source":"/s","type":"order.paid",`+body+`}`
			}
			status, text := h.postCloudEvent(door, header, body)
			if status != c.want || status == 422 && c.header == nil && !strings.Contains(text, `"field":"data`) {
				t.Errorf("%s, %s: %d %s", door, body, status, text)
			}
		}
	}
}

// TestCloudEventWithoutContentType: a CloudEvent in binary mode without datacontenttype has no Content-Type. A request that
// is not a CloudEvent must have one.
func TestCloudEventWithoutContentType(t *testing.T) {
	h := newHouse(t, apptest.Options{})
	for _, door := range ceDoors {
		for _, body := range []string{"", "anything"} {
			status, text := h.postCloudEvent(door, map[string]string{
				"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/s", "Ce-Type": "order.paid", "X-Type": "order.paid",
			}, body)
			if status != http.StatusAccepted {
				t.Errorf("%s, body %q: %d %s", door, body, status, text)
				continue
			}
			if _, contentType := h.event(text); contentType != "application/octet-stream" {
				t.Errorf("%s, body %q: delivered as %q", door, body, contentType)
			}
		}
		if status, text := h.postCloudEvent(door, map[string]string{"Godwit-Event-Type": "order.paid", "X-Type": "order.paid"}, "anything"); status != 415 {
			t.Errorf("%s, no CloudEvent: %d %s", door, status, text)
		}
	}
}
