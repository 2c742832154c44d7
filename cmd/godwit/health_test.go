package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// health runs the command and returns its exit code and everything that it printed.
func health(t *testing.T, variables map[string]string, args ...string) (int, string) {
	t.Helper()
	var out strings.Builder
	code := run(append([]string{"health", "--within", "5m"}, args...), &environment{
		ctx: t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &out,
		lookup: func(name string) (string, bool) { v, set := variables[name]; return v, set },
	})
	return code, out.String()
}

func TestHealthOfARunningServer(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	address := strings.TrimPrefix(srv.URL, "http://")
	_, port, _ := strings.Cut(address, ":")
	// A container sets the address for all of its commands by the environment, and the server listens everywhere.
	for _, listen := range []string{address, "0.0.0.0:" + port, ":" + port} {
		if code, out := health(t, map[string]string{"GODWIT_LISTEN": listen}); code != exitOK || out != "ready\n" {
			t.Errorf("%s: exit %d, %q", listen, code, out)
		}
	}
	if code, out := health(t, nil, "--live", "--listen", address); code != exitOK || out != "alive\n" {
		t.Errorf("--live: exit %d, %q", code, out)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if code, out := health(t, nil, "--listen", address); code != exitFailed || !strings.Contains(out, "does not answer") {
		t.Errorf("stopped: exit %d, %q", code, out)
	}
}

func TestHealthOfOtherAnswers(t *testing.T) {
	for _, c := range []struct {
		name, path string
		status     int
		body       string
		args       []string
		code       int
		says       string
	}{
		{"not ready", "/readyz", 503, `{"status":"unavailable","reason":"store"}`, nil, exitFailed, "unavailable: store"},
		{"not ready, but alive", "/healthz", 200, `{"status":"alive"}`, []string{"--live"}, exitOK, "alive"},
		{"another program", "/readyz", 200, `<html>`, nil, exitFailed, "not as a godwit server does"},
	} {
		t.Run(c.name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("GET "+c.path, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			srv := httptest.NewTLSServer(mux)
			defer srv.Close()
			args := append([]string{"--listen", srv.Listener.Addr().String(), "--tls-cert", "cert.pem", "--tls-key", "key.pem"}, c.args...)
			if code, out := health(t, nil, args...); code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("exit %d, %q", code, out)
			}
		})
	}
	if code, out := health(t, nil, "--listen", "127.0.0.1:0"); code != exitFailed || !strings.Contains(out, "port 0") {
		t.Errorf("port 0: exit %d, %q", code, out)
	}
}
