package client_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestCommands(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	commands := newClient(t, srv).Commands()
	registry, err := commands.Registry(t.Context())
	if err != nil || registry.Caller.TenantID != srv.Tenant.String() || len(registry.Commands) == 0 {
		t.Fatalf("registry %+v, %v", registry, err)
	}
	ep := srv.Endpoint("http://127.0.0.1:9/")
	del := client.Command{Entity: "endpoint", Action: "delete", Target: ep.ID.String(), Args: json.RawMessage(`{"request":"1"}`)}
	asked, err := commands.Submit(t.Context(), del)
	if err != nil || !asked.Awaits() || asked.Ended() || asked.ConfirmationToken == "" || asked.ExpiresAt == nil || asked.Intent.Target != del.Target {
		t.Fatalf("asked %+v, %v", asked, err)
	}
	var e *client.Error
	if _, err := commands.Confirm(t.Context(), asked.CommandID, "cft_wrong", ""); !errors.As(err, &e) || e.Code != "confirmation_invalid" || e.Detail == "" || e.Status != 403 {
		t.Errorf("confirmed wrongly: %v", err)
	}
	done, err := commands.Confirm(t.Context(), asked.CommandID, asked.ConfirmationToken, "")
	if err != nil || done.Status != "executed" || !done.Executed || done.Outcome == nil || done.Awaits() {
		t.Errorf("confirmed %+v, %v", done, err)
	}
	again, err := commands.Submit(t.Context(), del)
	if err != nil || again.Decision != "duplicate_replayed" || string(again.Outcome.Result) != string(done.Outcome.Result) {
		t.Errorf("again %+v, %v", again, err)
	}
	if status, err := commands.Status(t.Context(), asked.CommandID); err != nil || status.Status != "executed" {
		t.Errorf("status %+v, %v", status, err)
	}
	// A no is an answer; what is not taken is an error.
	no, err := commands.Submit(t.Context(), client.Command{Entity: "endpoint", Action: "rotate_secret", Target: ep.ID.String()})
	if err != nil || no.Status != "rejected" || no.Outcome.Reason != "not_found" {
		t.Errorf("rejected %+v, %v", no, err)
	}
	if _, err := commands.Submit(t.Context(), client.Command{Entity: "endpoint", Action: "praise"}); !errors.As(err, &e) || e.Code != "unknown_command" {
		t.Errorf("unknown: %v", err)
	}
	if _, err := commands.StepUp(t.Context(), asked.CommandID); !errors.As(err, &e) || e.Code != "not_awaiting_confirmation" {
		t.Errorf("approved what awaits nothing: %v", err)
	}
}

func TestCommandsOfTwoKeys(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	mine := newClient(t, srv).Commands()
	srv.Key = srv.NewKey(srv.Tenant, godwit.ScopeAdmin)
	theirs := newClient(t, srv).Commands()
	other, _ := srv.NewTenant("other", godwit.ScopeRead)
	asked, err := mine.Submit(t.Context(), client.Command{Entity: "tenant", Action: "delete", Target: other.String()})
	if err != nil || asked.StepUpURL == "" {
		t.Fatalf("asked %+v, %v", asked, err)
	}
	approval, err := theirs.StepUp(t.Context(), asked.CommandID)
	if err != nil || approval.Token == "" || approval.CommandID != asked.CommandID {
		t.Fatalf("approved %+v, %v", approval, err)
	}
	if done, err := mine.Confirm(t.Context(), asked.CommandID, asked.ConfirmationToken, approval.Token); err != nil || done.Status != "executed" {
		t.Errorf("confirmed %+v, %v", done, err)
	}
}
