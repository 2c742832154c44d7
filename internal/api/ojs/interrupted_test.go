package ojs_test

import (
	"net/http"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// TestRepeatOfAnInterruptedCreation: the repeat gets the subscription and its secret. Once the answer is stored, repeats do not
// show the secret.
func TestRepeatOfAnInterruptedCreation(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		r.subscribe("/tap", object{"events": []string{"webhook.*"}})
		create := apptest.Call{
			Path: subscriptions, Body: object{"url": "https://example.com/", "events": []string{"*"}}, Header: map[string]string{"Idempotency-Key": `"0123456789abcdef-create"`},
		}
		first := r.send(t, http.StatusCreated, create)
		r.Interrupt(create)
		repeat := r.send(t, http.StatusCreated, create)
		later := r.send(t, http.StatusCreated, create)
		if text, _ := first["secret"].(string); text == "" || repeat["secret"] != text || repeat["id"] != first["id"] {
			t.Errorf("first %v, repeat %v", first, repeat)
		}
		if later["id"] != first["id"] || later["secret"] != nil || later["secret_redacted"] != true {
			t.Errorf("later %v", later)
		}
		if n := r.count(); n != 2 {
			t.Errorf("%d subscriptions", n-1)
		}
		var announced struct{ Items []struct{ ID string } }
		r.Must(apptest.Call{Path: "/v1/events?type=webhook.subscription.created"}, &announced)
		if len(announced.Items) != 2 {
			t.Errorf("two subscriptions were announced %d times", len(announced.Items))
		}
	})
}
