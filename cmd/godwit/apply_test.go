package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/slowtest"
)

// A run of apply that is killed is completed by the next one: nothing is missing and nothing is there twice.
func TestApplyKilled(t *testing.T) {
	slowtest.Needs(t, "processes that are killed")
	const tenants = 40
	srv := apptest.Start(t, apptest.Options{})
	target, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	var (
		mu   sync.Mutex
		puts int
		kill func()
	)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			mu.Lock()
			if puts++; puts%30 == 0 && kill != nil {
				defer kill() // the server has done it, and the answer is lost or not
				kill = nil
			}
			mu.Unlock()
		}
		forward.ServeHTTP(w, r)
	}))
	defer proxy.Close()

	var text strings.Builder
	text.WriteString("event_types:\n  order.paid: {schema: {type: object, required: [total]}}\ntenants:\n")
	for i := range tenants {
		fmt.Fprintf(&text, "  customer-%d: {endpoints: {main: {url: 'https://customer-%d.example/'}}}\n", i, i)
	}
	file := filepath.Join(t.TempDir(), "platform.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	apply := func(kills bool, flags ...string) (string, error) {
		cmd := exec.Command("godwit", append([]string{"apply", "-f", file, "--url", proxy.URL, "--key", srv.Key}, flags...)...)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		started := make(chan struct{})
		mu.Lock()
		if kill = nil; kills {
			kill = func() { <-started; cmd.Process.Kill() }
		}
		mu.Unlock()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		close(started)
		err := cmd.Wait()
		return out.String(), err
	}
	for range 2 {
		if out, err := apply(true); err == nil {
			t.Fatalf("apply was not killed:\n%s", out)
		}
	}
	if out, err := apply(false); err != nil || !strings.Contains(out, "0 changed, 0 deleted") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := apply(false, "--dry-run"); err != nil || !strings.Contains(out, fmt.Sprintf("no change: %d objects", 2*tenants+1)) {
		t.Errorf("%v\n%s", err, out)
	}
	environment := map[string]string{"Godwit-Environment": "default"}
	for path, want := range map[string]int{"/v1/tenants?limit=200": tenants + 1, "/v1/endpoints?limit=200": tenants} { // and the administrator's tenant
		var list struct{ Items []struct{ ID string } }
		srv.Must(apptest.Call{Path: path, Header: environment}, &list)
		if len(list.Items) != want {
			t.Errorf("%s: there are %d, want %d", path, len(list.Items), want)
		}
	}
	if r := srv.Call(apptest.Call{Path: "/v1/events?type=order.paid", Header: map[string]string{"Godwit-Environment": "default", "Godwit-Tenant": "customer-7"}, Body: `{"total":1}`}); r.Status != 202 {
		t.Errorf("got %d %s", r.Status, r.Body)
	}

	if err := os.WriteFile(file, []byte(strings.Replace(text.String(), "customer-3.example", "other.example", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := apply(false, "--dry-run")
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != exitGoesOn {
		t.Errorf("a dry run with a difference ended with %v\n%s", err, out)
	}
}
