package godwit

import (
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
)

func ptr[T any](v T) *T { return &v }

var written = &Agreement{Document: "https://partner.example/agreement", VisibleToBoth: true}

func TestPolicyRefusals(t *testing.T) {
	trace.Covers(t, "EDS-AGR-3", "EDS-STA-200", "EDS-BKO-3", "EDS-SEC-DOS-1")
	for name, c := range map[string]struct {
		o     PolicyOverrides
		field string
	}{
		"endless retries":                    {PolicyOverrides{MaxRetries: ptr(-1)}, "policy.max_retries"},
		"too many retries":                   {PolicyOverrides{MaxRetries: ptr(1 << 30)}, "policy.max_retries"},
		"no time bound":                      {PolicyOverrides{MaxElapsedSeconds: ptr(0.0)}, "policy.max_elapsed_seconds"},
		"negative time bound":                {PolicyOverrides{MaxElapsedSeconds: ptr(-1.0)}, "policy.max_elapsed_seconds"},
		"longer than the dedup window":       {PolicyOverrides{MaxElapsedSeconds: ptr(86400.0)}, "policy.max_elapsed_seconds"},
		"cap below base":                     {PolicyOverrides{BaseSeconds: ptr(10.0), CapSeconds: ptr(5.0)}, "policy.cap_seconds"},
		"timeout of zero":                    {PolicyOverrides{TimeoutSeconds: ptr(0.0)}, "policy.timeout_seconds"},
		"status without agreement":           {PolicyOverrides{Statuses: map[string]string{"404": "transient"}}, "policy.statuses.404"},
		"agreement not written":              {PolicyOverrides{Statuses: map[string]string{"404": "transient"}, Agreement: &Agreement{VisibleToBoth: true}}, "policy.statuses.404"},
		"agreement seen by one side":         {PolicyOverrides{Statuses: map[string]string{"404": "transient"}, Agreement: &Agreement{Document: written.Document}}, "policy.statuses.404"},
		"200 agreed away":                    {PolicyOverrides{Statuses: map[string]string{"200": "transient"}, Agreement: written}, "policy.statuses.200"},
		"201 agreed away":                    {PolicyOverrides{Statuses: map[string]string{"201": "terminal"}, Agreement: written}, "policy.statuses.201"},
		"202 agreed away":                    {PolicyOverrides{Statuses: map[string]string{"202": "terminal"}, Agreement: written}, "policy.statuses.202"},
		"204 agreed away":                    {PolicyOverrides{Statuses: map[string]string{"204": "transient"}, Agreement: written}, "policy.statuses.204"},
		"401 as accepted":                    {PolicyOverrides{Statuses: map[string]string{"401": "accepted"}, Agreement: written}, "policy.statuses.401"},
		"403 as accepted":                    {PolicyOverrides{Statuses: map[string]string{"403": "accepted"}, Agreement: written}, "policy.statuses.403"},
		"207 by status":                      {PolicyOverrides{Statuses: map[string]string{"207": "accepted"}, Agreement: written}, "policy.statuses.207"},
		"no status code":                     {PolicyOverrides{Statuses: map[string]string{"abc": "accepted"}, Agreement: written}, "policy.statuses.abc"},
		"no outcome":                         {PolicyOverrides{Statuses: map[string]string{"404": "maybe"}, Agreement: written}, "policy.statuses.404"},
		"multi-status without agreement":     {PolicyOverrides{MultiStatus: ptr(true)}, "policy.multi_status"},
		"keys too short to be random":        {PolicyOverrides{KeyMaxLength: ptr(21)}, "policy.key_max_length"},
		"hex keys too short to be random":    {PolicyOverrides{KeyMaxLength: ptr(31), KeyAlphabet: ptr("hex")}, "policy.key_max_length"},
		"keys that no field holds":           {PolicyOverrides{KeyMaxLength: ptr(256)}, "policy.key_max_length"},
		"keys longer than they may be":       {PolicyOverrides{KeyMinLength: ptr(41), KeyMaxLength: ptr(40)}, "policy.key_min_length"},
		"an alphabet of nobody's":            {PolicyOverrides{KeyAlphabet: ptr("cyrillic")}, "policy.key_alphabet"},
		"unknown hold scope":                 {PolicyOverrides{HoldScope: ptr("planet")}, "policy.hold_scope"},
		"rate of zero, which is not endless": {PolicyOverrides{RatePerSecond: ptr(0.0)}, "policy.rate_per_second"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.o.Apply(edsPolicy())
			if err == nil || err.Field != c.field {
				t.Fatalf("got %v, want an error about %s", err, c.field)
			}
		})
	}
}

func TestPolicyOverrides(t *testing.T) {
	trace.Covers(t, "EDS-RTY-1")
	o := PolicyOverrides{
		MaxRetries: ptr(0), TimeoutSeconds: ptr(60.0), HoldScope: ptr(HoldEvent), RatePerSecond: ptr(5.0),
		Statuses: map[string]string{"404": "transient"}, MultiStatus: ptr(true), Agreement: written, RefreshOn401: ptr(false),
	}
	defaults := edsPolicy()
	defaults.RefreshOn401 = true
	p, err := o.Apply(defaults)
	if err != nil {
		t.Fatal(err)
	}
	if p.MaxRetries != 0 || p.Timeout != time.Minute || p.HoldScope != HoldEvent || p.Rate != 5 || p.Statuses[404] != Transient || !p.MultiStatus || p.RefreshOn401 {
		t.Errorf("overrides not applied: %+v", p)
	}
	if p.Base != time.Second || p.MaxElapsed != 23*time.Hour {
		t.Errorf("other members changed: %+v", p)
	}
}

func TestWindowsAreReplacedOneByOne(t *testing.T) {
	minute, second := RateWindow{Count: 1000, Per: time.Minute}, RateWindow{Count: 100, Per: time.Second}
	for name, c := range map[string]struct {
		overrides PolicyOverrides
		want      []RateWindow
		refused   string
	}{
		"none":           {PolicyOverrides{}, []RateWindow{minute, second}, ""},
		"minute":         {PolicyOverrides{PerMinute: ptr(60)}, []RateWindow{second, {60, time.Minute}}, ""},
		"second":         {PolicyOverrides{PerSecond: ptr(5)}, []RateWindow{minute, {5, time.Second}}, ""},
		"both":           {PolicyOverrides{PerSecond: ptr(5), PerMinute: ptr(60)}, []RateWindow{{5, time.Second}, {60, time.Minute}}, ""},
		"minute lifted":  {PolicyOverrides{PerMinute: ptr(0)}, []RateWindow{second}, ""},
		"both lifted":    {PolicyOverrides{PerMinute: ptr(0), PerSecond: ptr(0)}, []RateWindow{}, ""},
		"negative":       {PolicyOverrides{PerMinute: ptr(-1)}, nil, "policy.per_minute"},
		"too many":       {PolicyOverrides{PerSecond: ptr(maxPerWindow + 1)}, nil, "policy.per_second"},
		"account bound":  {PolicyOverrides{AccountPerMinute: ptr(maxPerWindow + 1)}, nil, "policy.account_per_minute"},
		"account lifted": {PolicyOverrides{AccountPerMinute: ptr(0)}, []RateWindow{minute, second}, ""},
	} {
		defaults := edsPolicy()
		defaults.Windows, defaults.AccountPerMinute = []RateWindow{minute, second}, 10000
		p, err := c.overrides.Apply(defaults)
		if c.refused != "" {
			if err == nil || err.Field != c.refused {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !slices.Equal(p.Windows, c.want) {
			t.Errorf("%s: %v, %v", name, p.Windows, err)
		}
		if !slices.Equal(defaults.Windows, []RateWindow{minute, second}) {
			t.Fatalf("%s changed the profile's own windows: %v", name, defaults.Windows)
		}
		if c.overrides.AccountPerMinute != nil && p.AccountPerMinute != 0 {
			t.Errorf("%s: %d for the account", name, p.AccountPerMinute)
		}
	}
}

func TestOverridesOfTheDialects(t *testing.T) {
	defaults := edsPolicy()
	defaults.MinRetries, defaults.MaxRetries, defaults.SkipWhilePaused, defaults.Announce, defaults.Rotation = 5, 7, true, true, RotationBoth
	for n, ok := range map[int]bool{-1: false, 0: false, 4: false, 5: true, 200: true, 201: false} {
		p, err := (&PolicyOverrides{MaxRetries: ptr(n)}).Apply(defaults)
		if (err == nil) != ok || ok && p.MaxRetries != n || !ok && err.Field != "policy.max_retries" {
			t.Errorf("%d retries: %d, %v", n, p.MaxRetries, err)
		}
	}
	for rotation, ok := range map[string]bool{RotationBoth: true, RotationOldFirst: true, RotationOldOnly: true, "new-only": false, "": false} {
		p, err := (&PolicyOverrides{Rotation: &rotation}).Apply(defaults)
		if (err == nil) != ok || ok && p.Rotation != rotation || !ok && err.Field != "policy.rotation" {
			t.Errorf("rotation %q: %q, %v", rotation, p.Rotation, err)
		}
	}
	p, err := (&PolicyOverrides{
		SkipWhilePaused: ptr(false), Announce: ptr(false), Alert: ptr(true), DisableAfterFails: ptr(3), ReenableAfterSecs: ptr(60.0),
	}).Apply(defaults)
	if err != nil || p.SkipWhilePaused || p.Announce || !p.Alert || p.DisableAfterFailures != 3 || p.ReenableAfter != time.Minute {
		t.Errorf("%+v: %v", p, err)
	}
	if p, err := (&PolicyOverrides{}).Apply(defaults); err != nil || !p.SkipWhilePaused || !p.Announce || p.Alert || p.Rotation != RotationBoth {
		t.Errorf("without overrides: %+v, %v", p, err)
	}
	for field, o := range map[string]PolicyOverrides{
		"policy.disable_after_failures": {DisableAfterFails: ptr(-1)}, "policy.reenable_after_seconds": {ReenableAfterSecs: ptr(-1.0)},
	} {
		if _, err := o.Apply(defaults); err == nil || err.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
