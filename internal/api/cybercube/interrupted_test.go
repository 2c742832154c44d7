package cybercube_test

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
)

// TestRepeatOfAnInterruptedCreation: the repeat gets the endpoint and its secret, and is not refused because the first request
// used the hour's last creation. Once the answer is stored, repeats do not show the secret.
func TestRepeatOfAnInterruptedCreation(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		o.KeepLimits = true
		o.Configure = func(c *config.Config) { c.Cybercube.CreatesPerHour = 1 }
		s := apptest.Start(t, o)
		create := apptest.Call{
			Path: base + "/endpoints", Body: apptest.Fields{"url": "https://example.com/"}, Header: map[string]string{"Idempotency-Key": `"0123456789abcdef-create"`},
		}
		var first, repeat, later struct {
			Data struct{ ID, Secret string }
		}
		s.Must(create, &first)
		s.Interrupt(create)
		s.Must(create, &repeat)
		if first.Data.Secret == "" || repeat != first {
			t.Errorf("first %+v, repeat %+v", first, repeat)
		}
		if s.Must(create, &later); later.Data.ID != first.Data.ID || later.Data.Secret != "" {
			t.Errorf("later %+v", later)
		}
		var list struct{ Data []struct{ ID string } }
		if s.Must(apptest.Call{Path: base + "/endpoints"}, &list); len(list.Data) != 1 {
			t.Errorf("%d endpoints", len(list.Data))
		}
	})
}
