package engine

import (
	"context"
	"fmt"
	"net/http"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// Announce stores an event about a subscription, even if no endpoint matches it now (OJS-OBS-4, OJS-OBS-5). A subscription is
// created once and deleted once, so each is announced once, although the repeat of an interrupted request announces it again.
func (ac *acceptor) Announce(ctx context.Context, a profile.Announcement) error {
	if a.At.IsZero() {
		a.At = ac.cfg.Clock.Now()
	}
	own := a.Event()
	_, err := ac.Submit(ctx, Submission{TenantID: a.TenantID, Own: true, Idempotency: &Idempotency{
		ID: godwit.IdempotencyID(godwit.KeyID{}, a.Type, a.EndpointID.String()),
		Respond: func([]godwit.Event, []int) *godwit.StoredResponse {
			return &godwit.StoredResponse{Status: http.StatusAccepted}
		},
	}, Events: []Publication{{
		Type: own.Type, ContentType: own.ContentType, Format: own.Format,
		Except:  a.EndpointID, // an endpoint does not get the event about itself
		Compose: func(event *godwit.Event) { event.Body = own.Body(event.ID) },
	}}})
	if err != nil {
		return fmt.Errorf("announce %s: %w", a.Type, err)
	}
	return nil
}
