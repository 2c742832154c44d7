package apptest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Request is a request that the sink received completely.
type Request struct {
	N          int // 1 for the first on its path
	Conn       int // number of the connection, counted from 1 over the sink
	Method     string
	Path       string // as sent, with the query
	Proto      string
	Host       string
	Header     http.Header
	Head       string // HTTP/1.1: the exact bytes up to the empty line
	Body       []byte
	TLS        *tls.ConnectionState
	RemoteAddr string
	At         time.Time
}

// Key is the value of the Idempotency-Key field, as sent.
func (r *Request) Key() string { return r.Header.Get("Idempotency-Key") }

// A Sink is a receiver that a test controls. It answers 200 unless it has a script.
type Sink struct {
	t        testing.TB
	base     string
	listener net.Listener
	options  sinkOptions
	tls      *tls.Config // nil: plain
	closing  chan struct{}
	running  sync.WaitGroup

	mu       sync.Mutex
	arrived  chan struct{} // closed and replaced at every arrival
	requests []Request
	perPath  map[string]int
	scripts  map[string][]Reply
	funcs    map[string]func(*Request) Reply
	open     map[net.Conn]struct{}
	conns    int
}

type sinkOptions struct {
	tls   *SinkTLS
	http2 bool
	addr  string
}

// A SinkOption changes how a sink listens.
type SinkOption func(*sinkOptions)

// WithTLS serves HTTPS with a certificate of the test authority; see CAFile.
func WithTLS(c SinkTLS) SinkOption { return func(o *sinkOptions) { o.tls = &c } }

// WithHTTP2 serves HTTP/2 (over TLS) in place of HTTP/1.1.
func WithHTTP2() SinkOption {
	return func(o *sinkOptions) {
		o.http2 = true
		if o.tls == nil {
			o.tls = &SinkTLS{}
		}
	}
}

// At listens on this address, so that a sink can replace an earlier one.
func At(addr string) SinkOption { return func(o *sinkOptions) { o.addr = addr } }

// NewSink starts a sink. It ends with the test.
func NewSink(t testing.TB, options ...SinkOption) *Sink {
	t.Helper()
	s := &Sink{
		t: t, closing: make(chan struct{}), arrived: make(chan struct{}),
		perPath: map[string]int{}, scripts: map[string][]Reply{}, funcs: map[string]func(*Request) Reply{},
		open: map[net.Conn]struct{}{}, options: sinkOptions{addr: "127.0.0.1:0"},
	}
	for _, o := range options {
		o(&s.options)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", s.options.addr)
	if err != nil {
		t.Fatalf("start sink: %v", err)
	}
	s.listener = l
	s.base = "http://" + l.Addr().String()
	if s.options.tls != nil {
		s.base = "https://" + l.Addr().String()
		s.tls = s.options.tls.config(t, s.options.http2)
	}
	t.Cleanup(s.Close)
	s.serve()
	return s
}

// URL returns the URL of a path of the sink.
func (s *Sink) URL(path string) string { return s.base + path }

// HostURL returns the URL of a path under another host name, which must resolve to 127.0.0.1.
func (s *Sink) HostURL(host, path string) string {
	u, err := url.Parse(s.base)
	if err != nil {
		s.t.Fatalf("sink address %q: %v", s.base, err)
	}
	return u.Scheme + "://" + net.JoinHostPort(host, u.Port()) + path
}

// Addr returns the sink's host and port.
func (s *Sink) Addr() string { return s.listener.Addr().String() }

// Script sets the replies for a path: one reply for each request in order, and the last reply for all later ones. Counting
// starts now.
func (s *Sink) Script(path string, replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.funcs, path)
	s.scripts[path] = slices.Clone(replies)
}

// ReplyFunc computes the replies for a path. f is called concurrently.
func (s *Sink) ReplyFunc(path string, f func(*Request) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.scripts, path)
	s.funcs[path] = f
}

// Requests lists the requests that arrived on a path so far; the empty path means all paths.
func (s *Sink) Requests(path string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.matching(path)
}

// Wait returns once n requests have arrived on all paths together.
func (s *Sink) Wait(n int) []Request { s.t.Helper(); return s.WaitOn("", n) }

// WaitOn returns once n requests arrived on a path.
func (s *Sink) WaitOn(path string, n int) []Request {
	s.t.Helper()
	return s.WaitFor(path, fmt.Sprintf("%d requests", n), func(seen []Request) bool { return len(seen) >= n })
}

// WaitFor returns once the condition holds for the requests on a path. It checks the condition again at each arrival.
func (s *Sink) WaitFor(path, what string, holds func(seen []Request) bool) []Request {
	s.t.Helper()
	deadline := time.NewTimer(waitLimit)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		seen, arrived := s.matching(path), s.arrived
		s.mu.Unlock()
		if holds(seen) {
			return seen
		}
		select {
		case <-arrived:
		case <-deadline.C:
			s.t.Fatalf("sink %s%s: no %s within %s; arrived: %s", s.base, path, what, waitLimit, summary(seen))
		}
	}
}

// Connections returns how many connections were opened to the sink so far.
func (s *Sink) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// DropConnections closes the open connections without notice: the sender finds its idle connections closed.
func (s *Sink) DropConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.Close()
	}
}

// Close ends the sink before the test ends. Its address then refuses connections.
func (s *Sink) Close() {
	s.mu.Lock()
	select {
	case <-s.closing:
		s.mu.Unlock()
		return
	default:
	}
	close(s.closing)
	s.listener.Close()
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// DeadURL returns a URL whose address refuses connections.
func DeadURL(t testing.TB, path string) string {
	t.Helper()
	s := NewSink(t)
	u := s.URL(path)
	s.Close()
	return u
}

func (s *Sink) matching(path string) []Request {
	var seen []Request
	for _, r := range s.requests {
		if path == "" || pathOnly(r.Path) == path {
			seen = append(seen, r)
		}
	}
	return seen
}

func pathOnly(uri string) string {
	p, _, _ := strings.Cut(uri, "?")
	return p
}

// arrive records a request and finds the reply to it.
func (s *Sink) arrive(r *Request) Reply {
	path := pathOnly(r.Path)
	s.mu.Lock()
	s.perPath[path]++
	r.N = s.perPath[path]
	r.At = time.Now()
	s.requests = append(s.requests, *r)
	close(s.arrived)
	s.arrived = make(chan struct{})
	f := s.funcs[path]
	var reply Reply
	if script := s.scripts[path]; len(script) > 0 {
		reply = script[0]
		if len(script) > 1 {
			s.scripts[path] = script[1:]
		}
	}
	s.mu.Unlock()
	if f != nil {
		reply = f(r)
	}
	return reply
}

func summary(seen []Request) string {
	if len(seen) == 0 {
		return "nothing"
	}
	var lines []string
	for _, r := range seen[max(0, len(seen)-20):] {
		lines = append(lines, fmt.Sprintf("%s %s (conn %d, %d bytes)", r.Method, r.Path, r.Conn, len(r.Body)))
	}
	return fmt.Sprintf("%d: %s", len(seen), strings.Join(lines, "; "))
}
