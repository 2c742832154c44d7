package cli

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// A watched list prints what is new or has changed since it was last printed.
func TestWatch(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	ep := srv.Endpoint("http://127.0.0.1:9/first")
	for _, format := range []string{"--json", "--limit=7"} {
		ctx, stop := context.WithCancel(t.Context())
		r, w := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- u.runIn(u.session(ctx, w, io.Discard), "endpoints", "list", "--watch", "--interval", "1ms", format)
			w.Close()
		}()
		lines := bufio.NewScanner(r)
		next := func(want string) {
			t.Helper()
			for lines.Scan() {
				if !strings.HasPrefix(lines.Text(), "ENDPOINT") {
					break
				}
			}
			if !strings.Contains(lines.Text(), want) {
				t.Errorf("%s: then %q, want %q", format, lines.Text(), want)
			}
		}
		next("active")
		srv.EndpointCall(ep, "POST", "/pause", nil)
		next("paused")
		srv.EndpointCall(ep, "POST", "/resume", nil)
		next("active")
		stop()
		go func() { _, _ = io.Copy(io.Discard, r) }()
		if err := <-ended; err != nil {
			t.Errorf("%s: ended with %v", format, err)
		}
	}
	u.refused([]string{"endpoints", "list", "--watch", "--interval", "0s"}, "--interval")
}

// On a terminal the list is drawn anew.
func TestWatchRedraws(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	u := at(t, srv)
	u.width = 80
	srv.Endpoint("http://127.0.0.1:9/first")
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- u.runIn(u.session(ctx, w, io.Discard), "endpoints", "list", "-w", "--interval", "1ms")
		w.Close()
	}()
	in := bufio.NewReader(r)
	for range 3 {
		if screen, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(screen, clear+"ENDPOINT") {
			t.Fatalf("screen %q, %v", screen, err)
		}
		if row, err := in.ReadString('\n'); err != nil || !strings.Contains(row, "…") {
			t.Fatalf("row %q, %v", row, err)
		}
	}
	stop()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
