package app_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
)

// A running server shows every setting with its value and origin.
func TestSettingsAreShown(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		o.Configure = func(c *config.Config) { c.Limits.Window = 77 }
		s := apptest.Start(t, o)
		var got struct {
			Version   string
			StartedAt string `json:"started_at"`
			Store     struct{ Backend, Location string }
			Options   []struct{ Name, Value, Default, Origin, Description, Key string }
			Limits    []struct {
				Name  string
				Value int64
			}
		}
		body := s.Must(apptest.Call{Path: "/v1/settings"}, &got).Body
		if len(got.Options) != len(config.Settings()) || got.Version == "" || got.StartedAt == "" || got.Store.Backend == "" || len(got.Limits) == 0 {
			t.Errorf("settings: %s", body)
		}
		for i, set := range config.Settings() {
			if o := got.Options[i]; o.Name != set.Flag || o.Description != set.Doc || o.Origin == "" || o.Key != set.Key {
				t.Errorf("%s is shown as %+v", set.Flag, o)
			}
		}
		at := slices.IndexFunc(got.Options, func(o struct{ Name, Value, Default, Origin, Description, Key string }) bool {
			return o.Name == "limits-window"
		})
		if w := got.Options[at]; w.Value != "77" || w.Default != "1024" || w.Origin != "program" {
			t.Errorf("a setting that was changed: %+v", w)
		}
	})
}

// No setting that may hold a secret shows it, whatever the setting is called: a new one is covered as soon as it exists.
func TestSettingsHideSecrets(t *testing.T) {
	const marker = "pl4inly-v1sible"
	secret := 0
	for _, set := range config.Settings() {
		if set.Secret == "" {
			continue
		}
		secret++
		for _, value := range []string{"postgres://user:" + marker + "@host/name?sslpassword=" + marker, "host=db user=u password=" + marker, marker} {
			if set.Secret == "url" && value == marker {
				continue
			}
			var c config.Config
			set.Value(&c).Set(reflect.ValueOf(value))
			if shown := set.Show(&c); strings.Contains(shown, marker) {
				t.Errorf("%s shows %s", set.Flag, shown)
			}
		}
	}
	if secret == 0 {
		t.Error("no setting is secret")
	}
	// A setting with such a name must say whether it is secret.
	for _, set := range config.Settings() {
		for _, word := range []string{"secret", "password", "token", "credential"} {
			if strings.Contains(set.Flag, word) && !strings.HasSuffix(set.Flag, "-file") && set.Secret == "" && set.Type.Kind() == reflect.String {
				t.Errorf("%s is not marked as secret", set.Flag)
			}
		}
	}
}
