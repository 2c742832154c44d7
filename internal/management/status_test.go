package management_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

func announced(on bool) management.NewEndpoint {
	return management.NewEndpoint{EndpointSpec: management.EndpointSpec{URL: "https://a.example/", Policy: godwit.PolicyOverrides{Announce: &on}}}
}

// A new subscription is announced before the engine knows it, so that it does not get the event about itself. A deleted
// one is announced after the engine has forgotten it.
func TestSubscriptionsAreAnnounced(t *testing.T) {
	f := newFixture(t, nil)
	e, _, err := f.management.Endpoints.Create(ctx, f.tenant, announced(true))
	must(t, err)
	f.delete(e.ID)
	if want := []string{profile.AnnounceSubscriptionCreated, "changed", "changed", profile.AnnounceSubscriptionDeleted}; !slices.Equal(f.engine.said, want) {
		t.Errorf("said %v, want %v", f.engine.said, want)
	}
	for _, a := range f.engine.news {
		if a.EndpointID != e.ID || a.TenantID != f.tenant.ID || !a.At.Equal(f.clock.Now()) {
			t.Errorf("announced %+v", a)
		}
	}
	f.engine.news = nil
	e, _, err = f.management.Endpoints.Create(ctx, f.tenant, announced(false))
	must(t, err)
	f.delete(e.ID)
	if len(f.engine.news) > 0 {
		t.Errorf("announced %+v although its policy does not say so", f.engine.news)
	}
}

func TestSubscriptionThatCannotBeAnnouncedIsNotMade(t *testing.T) {
	f := newFixture(t, nil)
	f.engine.mute = store.ErrUnavailable
	if _, _, err := f.management.Endpoints.Create(ctx, f.tenant, announced(true)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("created: %v", err)
	}
	left, err := f.management.Endpoints.List(ctx, store.EndpointFilter{TenantID: f.tenant.ID}, store.Page{Limit: 10})
	must(t, err)
	if len(left) != 0 {
		t.Errorf("%d endpoints are left behind", len(left))
	}
	f.engine.mute = nil
	e, _, err := f.management.Endpoints.Create(ctx, f.tenant, announced(true))
	must(t, err)
	f.engine.mute = store.ErrUnavailable
	f.delete(e.ID) // it is deleted nevertheless
}

func TestEndpointsByEveryRendering(t *testing.T) {
	f := newFixture(t, nil)
	e, _ := f.endpoint()
	public := profile.FormatCode(profile.CodeEndpoint, e.Code)
	for _, text := range []string{e.ID.String(), public, " " + public + " "} {
		got, err := f.management.Endpoints.Resolve(ctx, f.tenant.ID, text)
		if err != nil || got.ID != e.ID {
			t.Errorf("%q: %v", text, err)
		}
	}
	other, err := f.management.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{Name: "other"})
	must(t, err)
	wrong := []byte(public)
	wrong[len(wrong)-1] ^= 1
	for name, c := range map[string]struct {
		tenant godwit.TenantID
		text   string
	}{
		"another tenant's":      {other.ID, public},
		"wrong check character": {f.tenant.ID, string(wrong)},
		"unknown":               {f.tenant.ID, godwit.NewEndpointID(f.clock.Now()).String()},
		"no id":                 {f.tenant.ID, "x"},
		"nothing":               {f.tenant.ID, ""},
	} {
		if _, err := f.management.Endpoints.Resolve(ctx, c.tenant, c.text); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A status that an operator sets is kept, with its reason; the rest time after failures does not undo it.
func TestStatusByHand(t *testing.T) {
	f := newFixture(t, nil)
	e, _ := f.endpoint()
	steps := []struct {
		name   string
		do     func() (*godwit.Endpoint, error)
		status godwit.EndpointStatus
		reason string
	}{
		{"paused", func() (*godwit.Endpoint, error) {
			return f.management.Endpoints.Pause(ctx, f.tenant.ID, e.ID, "deploying")
		}, godwit.EndpointPaused, "deploying"},
		{"paused again", func() (*godwit.Endpoint, error) { return f.management.Endpoints.Pause(ctx, f.tenant.ID, e.ID, "") }, godwit.EndpointPaused, "deploying"},
		{"disabled", func() (*godwit.Endpoint, error) {
			return f.management.Endpoints.Disable(ctx, f.tenant.ID, e.ID, "spam")
		}, godwit.EndpointDisabled, "spam"},
		{"disabled again", func() (*godwit.Endpoint, error) {
			return f.management.Endpoints.Disable(ctx, f.tenant.ID, e.ID, "more spam")
		}, godwit.EndpointDisabled, "more spam"},
		{"resumed", func() (*godwit.Endpoint, error) { return f.management.Endpoints.Resume(ctx, f.tenant.ID, e.ID) }, godwit.EndpointActive, ""},
	}
	for _, s := range steps {
		// As after failures: the engine would enable it again.
		stored, err := f.store.Endpoint(ctx, f.tenant.ID, e.ID)
		must(t, err)
		stored.ReenableAt, stored.Version = f.clock.Now().Add(time.Hour), stored.Version+1
		must(t, f.store.UpdateEndpoint(ctx, stored))
		f.clock.Advance(time.Minute)
		got, err := s.do()
		must(t, err)
		if got.Status != s.status || got.StatusReason != s.reason || !got.ReenableAt.IsZero() || !got.StatusAt.Equal(f.clock.Now()) {
			t.Errorf("%s: %s %q since %s, tried again %s", s.name, got.Status, got.StatusReason, got.StatusAt, got.ReenableAt)
		}
	}
}

// A repeated stop without a reason keeps the reason of the status that it finds. If another caller resumed the endpoint
// meanwhile, the former reason no longer holds.
func TestStopDuringAChangeTakesNoFormerReason(t *testing.T) {
	f := newFixture(t, nil)
	e, _ := f.endpoint()
	_, err := f.management.Endpoints.Pause(ctx, f.tenant.ID, e.ID, "deploying")
	must(t, err)
	f.store.onUpdate = func() {
		_, err := f.management.Endpoints.Resume(ctx, f.tenant.ID, e.ID)
		must(t, err)
	}
	got, err := f.management.Endpoints.Pause(ctx, f.tenant.ID, e.ID, "")
	must(t, err)
	if got.Status != godwit.EndpointPaused || got.StatusReason != "" {
		t.Errorf("%s with the reason %q", got.Status, got.StatusReason)
	}
}
