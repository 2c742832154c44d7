package client_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

func TestBroadcast(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	sink := apptest.NewSink(t)
	for _, uid := range []string{"customer-1", "customer-2", "customer-3"} {
		if _, err := srv.App.Management().Tenants.Create(t.Context(), godwit.DefaultEnvironment, management.TenantSpec{UID: uid, Name: uid}); err != nil {
			t.Fatal(err)
		}
		srv.Must(apptest.Call{Path: "/v1/endpoints", Header: map[string]string{"Godwit-Tenant": uid}, Body: apptest.Fields{"url": sink.URL("/" + uid)}}, nil)
	}
	c, err := client.New(srv.URL, srv.NewKey(godwit.HomeOf(godwit.DefaultEnvironment), godwit.ScopeIngest, godwit.ScopeRead), client.WithTenant("customer-1"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	event := client.Event{Type: "order.paid", Body: []byte(`{}`), IdempotencyKey: "a-key-of-a-broadcast"}
	one, err := c.Broadcast(ctx, event, "customer-2")
	if err != nil || !one.Ended() || one.Tenants != 1 || len(one.Items) != 1 || one.Items[0].UID != "customer-2" {
		t.Fatalf("for one: %+v, %v", one, err)
	}
	if again, err := c.Broadcast(ctx, event, "customer-2"); err != nil || again.ID != one.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
	all, err := c.Broadcast(ctx, client.Event{Type: "order.paid", Body: []byte(`{}`)})
	if err != nil || all.Tenants != 3 || !all.AllTenants {
		t.Fatalf("for all: %+v, %v", all, err)
	}
	if b, err := c.GetBroadcast(ctx, all.ID); err != nil || b.Accepted != 3 || b.EndedAt.IsZero() {
		t.Errorf("progress: %+v, %v", b, err)
	}
	var uids []string
	for item, err := range c.BroadcastTenants(ctx, all.ID, false) {
		if err != nil {
			t.Fatal(err)
		}
		uids = append(uids, item.UID)
	}
	if len(uids) != 3 {
		t.Errorf("results of %v", uids)
	}
	for item, err := range c.BroadcastTenants(ctx, all.ID, true) {
		t.Errorf("skipped: %+v, %v", item, err)
	}
	sink.Wait(4)
	if _, err := c.Broadcast(ctx, event, "customer-2", "customer-9"); err == nil {
		t.Error("an unknown tenant was accepted")
	} else if e, ok := err.(*client.Error); !ok || e.Status != http.StatusUnprocessableEntity && e.Status != http.StatusNotFound {
		t.Errorf("refused with %v", err)
	}
}
