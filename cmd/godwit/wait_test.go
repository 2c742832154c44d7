//go:build unix

package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/postgrestest"
)

// listenAddress is part of the message of a server that waits.
var listenAddress = regexp.MustCompile(`msg="waiting for the database.* listen=(\S+)`)

// waits returns the URL of a process that waits for its database.
func (s *served) waits(t *testing.T) string {
	t.Helper()
	s.says(t, `msg="waiting for the database`)
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + listenAddress.FindStringSubmatch(s.log.String())[1]
}

// A server that starts while its database is away is alive and not ready, and says so once. It serves when the database is there.
func TestServerWaitsForItsDatabase(t *testing.T) {
	c := postgrestest.NewCluster(t)
	c.Crash()
	t.Setenv("GODWIT_KEYRING", app.GenerateRing())
	s := startServe(t, "serve", "--store", c.URL(), "--data", t.TempDir(), "--node", "a")
	url := s.waits(t)
	get := func(path string) (*http.Response, string) {
		t.Helper()
		answer, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer, string(text)
	}
	if r, text := get("/healthz"); r.StatusCode != http.StatusOK || !strings.Contains(text, "alive") {
		t.Errorf("/healthz: %s %s", r.Status, text)
	}
	if r, text := get("/readyz"); r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, `"store"`) {
		t.Errorf("/readyz: %s %s", r.Status, text)
	}
	for _, path := range []string{"/v1/endpoints", "/metrics", "/nowhere"} {
		r, text := get(path)
		if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || !strings.Contains(text, `"code":"unavailable"`) ||
			r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s %v %s", path, r.Status, r.Header, text)
		}
	}
	c.Start()
	s.serves(t)
	if r, text := get("/readyz"); r.StatusCode != http.StatusOK { // the same address
		t.Errorf("/readyz with the database: %s %s", r.Status, text)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log := s.wait()
	if n := strings.Count(log, `msg="waiting for the database`); n != 1 || strings.Contains(log, "does not take connections") || strings.Contains(log, "request failed") {
		t.Errorf("it said %d times that it waits:\n%s", n, log)
	}
}

// A signal ends a server that waits for its database at once, whatever the stop delay.
func TestSignalEndsTheWait(t *testing.T) {
	c := postgrestest.NewCluster(t)
	c.Crash()
	t.Setenv("GODWIT_KEYRING", app.GenerateRing())
	s := startServe(t, "serve", "--store", c.URL(), "--data", t.TempDir(), "--stop-delay", "10m")
	s.waits(t)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log := s.wait()
	if code := s.cmd.ProcessState.ExitCode(); code != exitOK || !strings.Contains(log, "stopped before it served") {
		t.Errorf("it ended with %d:\n%s", code, log)
	}
}

// Errors that only an operator can mend end the server. The commands and trials do not wait.
func TestLastingErrorsDoNotWait(t *testing.T) {
	store := postgrestest.URL(t)
	data := t.TempDir()
	t.Setenv("GODWIT_KEYRING", app.GenerateRing())
	first := startServe(t, "serve", "--store", store, "--data", data, "--node", "a")
	first.serves(t)
	refused := func(text, subcommand string, args ...string) {
		t.Helper()
		s := startServe(t, subcommand, args...)
		log := s.wait()
		if code := s.cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(log, text) || strings.Contains(log, "waiting") {
			t.Errorf("%s ended with %d:\n%s", subcommand, code, log)
		}
	}
	refused("does not exist", "serve", "--data", data, "--store", "postgres://postgres@"+hostOf(store)+"/absent?sslmode=disable")
	const nowhere = "postgres://postgres@127.0.0.1:1/postgres?sslmode=disable"
	refused("connect to postgres", "dev", "--no-samples", "--store", nowhere)
	t.Setenv("GODWIT_KEYRING", app.GenerateRing())
	refused("the key ring is not this store's own", "serve", "--data", data, "--store", store, "--node", "b")
}

// hostOf returns the host and port of a URL of a database.
func hostOf(store string) string {
	_, rest, _ := strings.Cut(store, "@")
	host, _, _ := strings.Cut(rest, "/")
	return host
}
