package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// runTail runs the command until the test ends. The channel brings the lines of its standard error.
func runTail(t *testing.T, key string, urls ...string) (stdout *bufio.Reader, stderr *bufio.Reader, ended <-chan int, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	complaints, complain := io.Pipe()
	code := make(chan int, 1)
	go func() {
		env := &environment{ctx: ctx, stdout: in, stderr: complain, stdin: strings.NewReader(""), lookup: func(string) (string, bool) { return "", false }}
		code <- run([]string{"tail", "--url", strings.Join(urls, ","), "--key", key}, env)
		in.Close()
		complain.Close()
	}()
	return bufio.NewReader(out), bufio.NewReader(complaints), code, cancel
}

// proxyTo passes requests to the server. Its connections can be cut, as those of a node that dies are.
func proxyTo(t *testing.T, to string) *httptest.Server {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	p := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1})
	t.Cleanup(p.Close)
	return p
}

// When the node that tail follows dies, tail says so and goes on at the next one.
func TestTailGoesOnAtTheNextServer(t *testing.T) {
	sink := apptest.NewSink(t)
	srv := apptest.Start(t, apptest.Options{})
	srv.Endpoint(sink.URL("/"))
	dying := proxyTo(t, srv.URL)
	stdout, stderr, ended, stop := runTail(t, srv.Key, dying.URL, srv.URL)
	enough := publishUntilRead(t, srv)
	if line, err := stdout.ReadString('\n'); err != nil || !strings.Contains(line, "order.paid") {
		t.Fatalf("printed %q, %v", line, err)
	}
	go func() { // the rest of the output must not hold up the command
		_, _ = io.Copy(io.Discard, stdout)
	}()
	dying.CloseClientConnections()
	for _, want := range []string{"the stream of attempts from " + dying.URL + " has ended: ", "connected to " + srv.URL} {
		if line, err := stderr.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Errorf("said %q, %v; want %q", line, err, want)
		}
	}
	enough()
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("ended with %d", code)
	}
}

// A server that is away for a while is tried again; one that refuses the key is not.
func TestTailTriesAgainUntilTheKeyIsRefused(t *testing.T) {
	var answers = make(chan int, 4)
	answers <- http.StatusOK
	answers <- http.StatusServiceUnavailable
	answers <- http.StatusOK
	answers <- http.StatusUnauthorized
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // each stream ends at once
		w.WriteHeader(<-answers)
	}))
	t.Cleanup(server.Close)
	stdout, stderr, ended, stop := runTail(t, "gdw_any", server.URL)
	defer stop()
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	said, err := io.ReadAll(stderr)
	if err != nil {
		t.Fatal(err)
	}
	var last int
	for _, want := range []string{"has ended: the server ended it or died", "no connection yet: 503", "connected to", "has ended", "tail: 401"} {
		at := strings.Index(string(said)[last:], want)
		if at < 0 {
			t.Fatalf("said %s\nwithout %q in its place", said, want)
		}
		last += at
	}
	if code := <-ended; code != exitFailed {
		t.Errorf("ended with %d", code)
	}
}
