package fastpath

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a Server with net/http behind it.
type rig struct {
	addr   string
	fast   *Server
	server *http.Server
	log    *bytes.Buffer // to be read when the rig is closed
}

// served names the server of a request.
func served(w http.ResponseWriter) string {
	if _, ok := w.(*response); ok {
		return "fast path"
	}
	return "net/http"
}

// echo answers with the request.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	w.Header().Set("X-Served-By", served(w))
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, "%s %s %s %s %d %v %q %v", r.Method, r.RequestURI, r.Host, r.Header.Get("X-Name"), r.ContentLength, r.Header["Accept"], body, err)
}

func newRig(t testing.TB, h http.HandlerFunc, change ...func(*Config)) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &rig{addr: l.Addr().String(), log: &bytes.Buffer{}}
	base, cancel := context.WithCancel(context.Background())
	cfg := Config{
		Handler: h, Hot: []string{"/hot"}, Context: base, Clock: time.Now, Log: slog.New(slog.NewTextHandler(b.log, nil)),
		Header: time.Minute, Read: time.Minute, Write: time.Minute, Idle: time.Minute,
	}
	for _, f := range change {
		f(&cfg)
	}
	b.fast = New(l, cfg)
	b.server = &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() { defer close(done); b.server.Serve(b.fast) }()
	t.Cleanup(func() {
		cancel()
		b.server.Close()
		b.fast.Close()
		b.fast.Wait(context.Background())
		<-done
	})
	return b
}

// client is a connection on which requests are written by hand.
type client struct {
	net.Conn
	br *bufio.Reader
	t  testing.TB
}

func (b *rig) dial(t testing.TB) *client {
	t.Helper()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{c, bufio.NewReader(c), t}
}

func (c *client) say(text string) { io.WriteString(c.Conn, text) }

// hear reads one answer.
func (c *client) hear() (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp, string(body)
}

// over waits until the connection ends.
func (c *client) over() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.br); len(rest) > 0 || err != nil && !errors.Is(err, net.ErrClosed) && !isReset(err) {
		c.t.Errorf("%q, %v before the end", rest, err)
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

const request = "POST /hot?a=b HTTP/1.1\r\nHost: x.test\r\nX-Name: n\r\nContent-Length: 5\r\n\r\nhello"

func TestServesHotRequests(t *testing.T) {
	b := newRig(t, echo)
	c := b.dial(t)
	for range 3 {
		c.say(request)
		resp, body := c.hear()
		if resp.StatusCode != 202 || resp.Header.Get("X-Served-By") != "fast path" || resp.Close || resp.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("%+v", resp)
		}
		if want := `POST /hot?a=b x.test n 5 [] "hello" <nil>`; body != want {
			t.Errorf("handler saw %s", body)
		}
		if date, err := http.ParseTime(resp.Header.Get("Date")); err != nil || time.Since(date) > time.Minute {
			t.Errorf("Date %q", resp.Header.Get("Date"))
		}
	}
	c.say(request + strings.Replace(request, "hello", "again", 1)) // pipelined
	_, first := c.hear()
	_, second := c.hear()
	if !strings.Contains(first, "hello") || !strings.Contains(second, "again") {
		t.Errorf("%s, %s", first, second)
	}
	c.say("POST /hot HTTP/1.1\r\nhost: x.test\r\ncontent-length: 6\r\nconnection: Keep-Alive\r\naccept: a\r\nAccept: b\r\n\r\nab")
	c.say("cdef")
	if resp, body := c.hear(); body != `POST /hot x.test  6 [a b] "abcdef" <nil>` || resp.Header.Get("X-Served-By") != "fast path" {
		t.Errorf("handler saw %s", body)
	}
}

// Requests that are not ordinary are answered as by net/http alone.
func TestPassesTheRest(t *testing.T) {
	plain := newRig(t, echo, func(c *Config) { c.Hot = nil })
	b := newRig(t, echo)
	long := strings.Repeat("x", 5000)
	for name, text := range map[string]string{
		"another path":         strings.Replace(request, "/hot", "/cold", 1),
		"path below":           strings.Replace(request, "/hot", "/hot/er", 1),
		"another method":       "GET /hot HTTP/1.1\r\nHost: x.test\r\n\r\n",
		"PUT":                  strings.Replace(request, "POST", "PUT", 1),
		"HTTP/1.0":             strings.Replace(request, "HTTP/1.1", "HTTP/1.0", 1),
		"absolute target":      strings.Replace(request, "/hot", "http://x.test/hot", 1),
		"encoded path":         strings.Replace(request, "/hot", "/%68ot", 1),
		"space in target":      strings.Replace(request, "a=b", "a= b", 1),
		"chunked":              "POST /hot HTTP/1.1\r\nHost: x.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"chunked and length":   "POST /hot HTTP/1.1\r\nHost: x.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"no length":            "POST /hot HTTP/1.1\r\nHost: x.test\r\n\r\n",
		"no host":              "POST /hot HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
		"two hosts":            strings.Replace(request, "X-Name: n", "Host: y.test", 1),
		"empty host":           strings.Replace(request, "x.test", "", 1),
		"bad host":             strings.Replace(request, "x.test", "x test/", 1),
		"two lengths":          strings.Replace(request, "X-Name: n", "Content-Length: 6", 1),
		"same length twice":    strings.Replace(request, "X-Name: n", "Content-Length: 5", 1),
		"signed length":        strings.Replace(request, "Length: 5", "Length: +5", 1),
		"negative length":      strings.Replace(request, "Length: 5", "Length: -5", 1),
		"hexadecimal length":   strings.Replace(request, "Length: 5", "Length: 0x5", 1),
		"overflowing length":   strings.Replace(request, "Length: 5", "Length: 18446744073709551621", 1),
		"space before colon":   strings.Replace(request, "X-Name:", "X-Name :", 1),
		"folded":               strings.Replace(request, "X-Name: n", "X-Name: n\r\n more", 1),
		"no colon":             strings.Replace(request, "X-Name: n", "X-Name", 1),
		"control character":    strings.Replace(request, "X-Name: n", "X-Name: \x01", 1),
		"bare newlines":        strings.ReplaceAll(request, "\r\n", "\n"),
		"bare newline":         strings.Replace(request, "n\r\nContent", "n\nContent", 1),
		"bare return":          strings.Replace(request, "X-Name: n", "X-Name: n\rX-Other: o", 1),
		"asked to close":       strings.Replace(request, "X-Name: n", "Connection: close", 1),
		"wants to switch":      strings.Replace(request, "X-Name: n", "Connection: upgrade\r\nUpgrade: h2c", 1),
		"expects leave":        strings.Replace(request, "X-Name: n", "Expect: something", 1),
		"header over a buffer": strings.Replace(request, "X-Name: n", "X-Name: "+long, 1),
		"not HTTP":             "\x16\x03\x01hello\r\n\r\n",
		"HTTP/2":               "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"large body":           "POST /hot HTTP/1.1\r\nHost: x.test\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000),
	} {
		t.Run(name, func(t *testing.T) {
			var answers [2]string
			for i, at := range []*rig{plain, b} {
				c := at.dial(t)
				c.say(text)
				c.Conn.(*net.TCPConn).CloseWrite()
				all, err := io.ReadAll(c.br)
				if err != nil && !isReset(err) {
					t.Fatal(err)
				}
				answers[i] = withoutDate(string(all))
			}
			if answers[0] != answers[1] || strings.Contains(answers[1], "By: fast path") {
				t.Errorf("net/http %q\nfast path %q", answers[0], answers[1])
			}
		})
	}
	t.Run("in pieces", func(t *testing.T) {
		c := b.dial(t)
		c.say(request)
		c.hear()
		c.say(request[:30])
		c.say(strings.Replace(request, "/hot", "/x", 1)[30:])
		if _, body := c.hear(); !strings.Contains(body, `"hello`) {
			t.Errorf("%s", body)
		}
	})
	t.Run("after hot ones", func(t *testing.T) {
		c := b.dial(t)
		c.say(request + "GET /cold HTTP/1.1\r\nHost: x.test\r\n\r\n" + request)
		for _, by := range []string{"fast path", "net/http", "net/http"} {
			if resp, _ := c.hear(); resp.Header.Get("X-Served-By") != by {
				t.Errorf("served by %s; want %s", resp.Header.Get("X-Served-By"), by)
			}
		}
	})
}

func withoutDate(text string) string {
	before, rest, found := strings.Cut(text, "Date: ")
	if !found {
		return text
	}
	_, after, _ := strings.Cut(rest, "\r\n")
	return before + after
}

// An unread body does not disturb the next request, and a body that does not arrive ends the connection.
func TestBodies(t *testing.T) {
	errs := make(chan error, 1)
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "read" {
			_, err := io.ReadAll(r.Body)
			errs <- err
		}
		w.WriteHeader(http.StatusUnauthorized)
	}
	b := newRig(t, handler)
	// impatient is for bodies that never arrive: a slow machine can only delay that.
	impatient := newRig(t, handler, func(c *Config) { c.Read = 50 * time.Millisecond })

	c := b.dial(t)
	long := strings.Replace(strings.Replace(request, "Length: 5", "Length: 60000", 1), "hello", strings.Repeat("x", 60000), 1)
	for range 3 {
		c.say(long)
		if resp, _ := c.hear(); resp.StatusCode != 401 || resp.Close {
			t.Fatalf("%+v", resp)
		}
	}
	c = impatient.dial(t)
	c.say(strings.Replace(request, "Length: 5", "Length: 50", 1)) // and no more
	if resp, _ := c.hear(); resp.StatusCode != 401 || !resp.Close {
		t.Errorf("%+v", resp)
	}
	c.over()

	short := strings.Replace(strings.Replace(request, "Length: 5", "Length: 50", 1), "a=b", "read", 1)
	c = impatient.dial(t)
	c.say(short)
	if err := <-errs; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("handler saw %v", err)
	}
	c.hear()
	c.over()

	c = b.dial(t)
	c.say(short)
	c.Conn.(*net.TCPConn).CloseWrite()
	if err := <-errs; err != io.ErrUnexpectedEOF {
		t.Errorf("handler saw %v", err)
	}
}

func TestAnswers(t *testing.T) {
	b := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		switch h := w.Header(); r.URL.RawQuery {
		case "nothing":
		case "bare":
			io.WriteString(w, "<html>")
		case "204":
			w.WriteHeader(204)
			if _, err := io.WriteString(w, "x"); err == nil {
				panic("a body was taken")
			}
		case "lies":
			h["Content-Length"], h["Transfer-Encoding"] = []string{"-100"}, []string{"chunked"}
			h["X-Break"], h["X Bad"] = []string{"a\r\nEvil: yes"}, []string{"x"}
			w.WriteHeader(103)
			w.WriteHeader(500)
			w.WriteHeader(200)
			io.WriteString(w, "two ")
			io.WriteString(w, "parts")
		case "close":
			h.Set("Connection", "close")
		case "abort":
			panic(http.ErrAbortHandler)
		case "panic":
			panic("an accident")
		}
	})
	ask := func(what string) (*client, string) {
		c := b.dial(t)
		c.say(strings.Replace(request, "a=b", what, 1))
		return c, what
	}
	for _, want := range []struct {
		what, body, kind string
		status           int
		length           int64
		close            bool
	}{
		{"nothing", "", "", 200, 0, false},
		{"bare", "<html>", "text/html; charset=utf-8", 200, 6, false},
		{"204", "", "", 204, 0, false},
		{"lies", "two parts", "text/plain; charset=utf-8", 500, 9, false},
		{"close", "", "", 200, 0, true},
	} {
		c, _ := ask(want.what)
		resp, body := c.hear()
		if resp.StatusCode != want.status || body != want.body || resp.Header.Get("Content-Type") != want.kind || resp.ContentLength != want.length || resp.Close != want.close {
			t.Errorf("%s: %+v %q", want.what, resp, body)
		}
		if resp.Header.Get("Evil") != "" || len(resp.TransferEncoding) != 0 || len(resp.Header["Date"]) != 1 {
			t.Errorf("%s: %+v", want.what, resp.Header)
		}
		if want.close {
			c.over()
		}
	}
	for _, what := range []string{"abort", "panic"} {
		c, _ := ask(what)
		c.over()
	}
	b.fast.Close()
	b.fast.Wait(context.Background())
	if text := b.log.String(); strings.Count(text, "handler panicked") != 1 || !strings.Contains(text, "an accident") {
		t.Errorf("log: %s", text)
	}
}

// Close lets a running request finish, announces the end of its connection, and closes idle connections.
func TestClose(t *testing.T) {
	arrived, finish := make(chan struct{}), make(chan struct{})
	b := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "a=b" {
			arrived <- struct{}{}
			<-finish
		}
	})
	silent, idle, active := b.dial(t), b.dial(t), b.dial(t)
	idle.say(strings.Replace(request, "a=b", "", 1))
	idle.hear()
	active.say(request)
	<-arrived
	b.fast.Close()
	idle.over()
	silent.over()
	waited := make(chan error)
	go func() { waited <- b.fast.Wait(context.Background()) }()
	close(finish)
	if resp, _ := active.hear(); !resp.Close {
		t.Error("the client was not told")
	}
	active.over()
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", b.addr); err == nil {
		t.Error("still listening")
	}
	if _, err := b.fast.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
}

// Wait does not wait for a connection that was accepted, or became idle, while the server closed.
func TestCloseMeetsNewConnection(t *testing.T) {
	b := newRig(t, echo)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	late, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	b.fast.Close()
	b.fast.admit(accepted)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := b.fast.Wait(ctx); err != nil {
		t.Error(err)
	}
}

// Wait closes connections whose requests do not finish in time.
func TestWaitEnds(t *testing.T) {
	arrived, finish := make(chan struct{}), make(chan struct{})
	b := newRig(t, func(http.ResponseWriter, *http.Request) { close(arrived); <-finish })
	c := b.dial(t)
	c.say(request)
	<-arrived
	b.fast.Close()
	ctx, cancel := context.WithCancel(context.Background())
	waited := make(chan error)
	go func() { waited <- b.fast.Wait(ctx) }()
	cancel()
	c.over()
	close(finish)
	if err := <-waited; err == nil {
		t.Error("waited in peace")
	}
}

func TestTimeouts(t *testing.T) {
	newRig(t, echo, func(c *Config) { c.Header = 50 * time.Millisecond }).dial(t).over()
	c := newRig(t, echo, func(c *Config) { c.Idle = 50 * time.Millisecond }).dial(t)
	c.say(request)
	c.hear()
	c.over()
}

func TestManyClients(t *testing.T) {
	b := newRig(t, echo)
	var wg sync.WaitGroup
	for i := range 16 {
		c := b.dial(t)
		wg.Go(func() {
			for k := range 50 {
				body := fmt.Sprintf("%d/%d%s", i, k, strings.Repeat("x", 37*k))
				fmt.Fprintf(c, "POST /hot HTTP/1.1\r\nHost: x.test\r\nX-Name: %d\r\nContent-Length: %d\r\n\r\n%s", i, len(body), body)
				if _, got := c.hear(); got != fmt.Sprintf("POST /hot x.test %d %d [] %q <nil>", i, len(body), body) {
					t.Errorf("%s", got)
					return
				}
			}
		})
	}
	wg.Wait()
}

// FuzzUnderstand: net/http reads the same request from every header that understand accepts.
func FuzzUnderstand(f *testing.F) {
	for _, text := range seeds {
		f.Add([]byte(text))
	}
	d := New(nil, Config{Hot: []string{"/hot"}, Context: context.Background()})
	f.Fuzz(func(t *testing.T, text []byte) {
		ours, size := d.understand(text)
		if ours == nil {
			return
		}
		br := bufio.NewReaderSize(bytes.NewReader(text), len(text)+16)
		theirs, err := http.ReadRequest(br)
		if err != nil {
			t.Fatalf("net/http refuses it: %v", err)
		}
		if left := br.Buffered(); len(text)-left != size {
			t.Fatalf("header of %d bytes; net/http says %d", size, len(text)-left)
		}
		if ours.Method != theirs.Method || ours.RequestURI != theirs.RequestURI || *ours.URL != *theirs.URL || ours.Host != theirs.Host ||
			ours.ContentLength != theirs.ContentLength || theirs.Close || len(theirs.TransferEncoding) != 0 || theirs.Proto != "HTTP/1.1" {
			t.Errorf("%+v\nnet/http %+v", ours, theirs)
		}
		if fmt.Sprint(ours.Header) != fmt.Sprint(theirs.Header) {
			t.Errorf("header %q\nnet/http %q", ours.Header, theirs.Header)
		}
	})
}
