package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// When the key of `godwit dev` is deleted, the command says so and runs until it is stopped.
func TestDevOutlivesItsKey(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	srv := apptest.Start(t, apptest.Options{Clock: hands})
	key, token, err := mint(t, srv)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(srv.URL, token)
	if err != nil {
		t.Fatal(err)
	}
	attempts, err := cl.Attempts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer attempts.Close()
	said, say := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- keepFollowing(ctx, &environment{ctx: ctx, stdout: io.Discard, stderr: say}, cl, attempts, true)
		say.Close()
	}()
	if err := srv.App.Management().Keys.Revoke(t.Context(), nil, srv.Tenant, key); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(said).ReadString('\n')
		heard <- line
	}()
	for line, waiting := "", true; waiting; { // the server checks the key again at intervals
		select {
		case line = <-heard:
			waiting = false
			if !strings.Contains(line, "key of this command was deleted") {
				t.Errorf("it said %q", line)
			}
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		default:
			srv.Call(apptest.Call{Path: "/healthz"}) // each check is a request, so this does not spin
			hands.Advance(time.Second)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	default:
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func mint(t *testing.T, srv *apptest.Server) (godwit.KeyID, string, error) {
	t.Helper()
	key, token, err := srv.App.Management().Keys.Create(t.Context(), nil, srv.Tenant, management.KeySpec{Name: "dev", Scopes: godwit.AllScopes})
	if err != nil {
		return godwit.KeyID{}, "", err
	}
	return key.ID, token, nil
}

// The query of an endpoint's URL may hold a credential; it is not printed.
func TestQueryOfAnEndpointIsMasked(t *testing.T) {
	raw := `{"id":"att_1","n":1,"url":"https://example.com/hook?token=s3cret"}`
	a := &client.Attempt{Raw: json.RawMessage(raw)}
	if err := json.Unmarshal(a.Raw, a); err != nil {
		t.Fatal(err)
	}
	line := string(maskURL(a))
	if strings.Contains(line, "s3cret") || !strings.Contains(line, `"https://example.com/hook?***"`) || !strings.Contains(line, `"id":"att_1"`) {
		t.Errorf("printed %s", line)
	}
}
