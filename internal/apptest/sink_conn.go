package apptest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// serve accepts connections. The sink implements HTTP/1.1 itself, because an HTTP server's handler cannot produce the worst
// behaviours of receivers. net/http serves HTTP/2.
func (s *Sink) serve() {
	if s.options.http2 {
		s.serveHTTP2()
		return
	}
	s.running.Go(func() {
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			n := s.register(c)
			s.running.Go(func() { s.serveConn(c, n) })
		}
	})
}

func (s *Sink) register(c net.Conn) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns++
	s.open[c] = struct{}{}
	select {
	case <-s.closing:
		c.Close()
	default:
	}
	return s.conns
}

func (s *Sink) forget(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func (s *Sink) serveConn(tcp net.Conn, n int) {
	defer s.forget(tcp)
	defer tcp.Close()
	c := tcp
	var state *tls.ConnectionState
	if s.tls != nil {
		tc := tls.Server(tcp, s.tls)
		if err := tc.HandshakeContext(context.Background()); err != nil {
			return
		}
		cs := tc.ConnectionState()
		c, state = tc, &cs
	}
	br := bufio.NewReader(c)
	for {
		r, err := readRequest(c, br)
		if err != nil {
			return
		}
		r.Conn, r.TLS, r.RemoteAddr = n, state, tcp.RemoteAddr().String()
		if !s.play(c, tcp, br, s.arrive(r)) {
			return
		}
	}
}

// readRequest reads one whole request, keeping the exact bytes of its head.
func readRequest(w io.Writer, br *bufio.Reader) (*Request, error) {
	var head bytes.Buffer
	for {
		line, err := br.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		head.Write(line)
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			break
		}
	}
	parsed, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head.Bytes())))
	if err != nil {
		return nil, fmt.Errorf("parse request: %w", err)
	}
	if strings.EqualFold(parsed.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(w, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return nil, err
		}
	}
	body, err := readBody(parsed, br)
	if err != nil {
		return nil, err
	}
	return &Request{
		Method: parsed.Method, Path: parsed.RequestURI, Proto: parsed.Proto, Host: parsed.Host,
		Header: parsed.Header, Head: head.String(), Body: body,
	}, nil
}

func readBody(r *http.Request, br *bufio.Reader) ([]byte, error) {
	if len(r.TransferEncoding) == 0 {
		body := make([]byte, max(r.ContentLength, 0))
		_, err := io.ReadFull(br, body)
		return body, err
	}
	body, err := io.ReadAll(httputil.NewChunkedReader(br))
	if err != nil {
		return nil, err
	}
	for { // trailer section
		line, err := br.ReadString('\n')
		if err != nil || strings.TrimRight(line, "\r\n") == "" {
			return body, err
		}
	}
}

// play executes a reply and reports whether the connection stays open.
func (s *Sink) play(c, tcp net.Conn, br *bufio.Reader, r Reply) bool {
	if r.gate != nil && !s.await(c, br, r.gate) {
		return false
	}
	if r.stall {
		s.await(c, br, nil)
		return false
	}
	text := ""
	if r.raw != nil {
		text = *r.raw
	} else {
		for _, e := range r.early {
			text += e.head()
		}
		text += r.head() + r.body
	}
	if _, err := io.WriteString(c, text); err != nil {
		return false
	}
	if r.ending == resetConnection {
		if t, ok := tcp.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
	}
	return r.ending == keepOpen
}

// await waits for the gate, for the sender to hang up, or for the sink's end; it reports whether the gate opened.
func (s *Sink) await(c net.Conn, br *bufio.Reader, gate <-chan struct{}) bool {
	gone := make(chan struct{})
	s.running.Go(func() {
		defer close(gone)
		for { // a sender that sends more before the response has not disconnected
			if _, err := br.Peek(br.Buffered() + 1); err != nil {
				return
			}
		}
	})
	opened := false
	select {
	case <-gate:
		opened = true
	case <-gone:
	case <-s.closing:
	}
	_ = c.SetReadDeadline(time.Unix(1, 0)) // ends the Peek
	<-gone
	_ = c.SetReadDeadline(time.Time{})
	return opened
}

// connKey finds the connection's number in a request's context.
type connKey struct{}

func (s *Sink) serveHTTP2() {
	server := &http.Server{
		Handler:           http.HandlerFunc(s.serveStream),
		TLSConfig:         s.tls,
		ReadHeaderTimeout: waitLimit,
		Protocols:         new(http.Protocols),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, s.register(c))
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				s.forget(c)
			}
		},
		ErrorLog: discardLog(),
	}
	server.Protocols.SetHTTP2(true)
	s.running.Go(func() {
		if err := server.ServeTLS(s.listener, "", ""); err != nil && !errors.Is(err, net.ErrClosed) {
			s.t.Errorf("sink: %v", err)
		}
		server.Close()
	})
}

func (s *Sink) serveStream(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	n, _ := hr.Context().Value(connKey{}).(int)
	r := s.arrive(&Request{
		Method: hr.Method, Path: hr.RequestURI, Proto: hr.Proto, Host: hr.Host, Header: hr.Header.Clone(),
		Body: body, TLS: hr.TLS, Conn: n, RemoteAddr: hr.RemoteAddr,
	})
	if r.gate != nil || r.stall {
		select {
		case <-r.gate:
		case <-hr.Context().Done():
			panic(http.ErrAbortHandler)
		case <-s.closing:
			panic(http.ErrAbortHandler)
		}
	}
	if r.raw != nil {
		panic(http.ErrAbortHandler)
	}
	for _, e := range r.early {
		setFields(w.Header(), e.fields)
		w.WriteHeader(e.code())
		clear(w.Header())
	}
	setFields(w.Header(), r.fields)
	if r.declared > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(r.declared))
	}
	if r.ending == closeAnnounced {
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(r.code())
	_, _ = io.WriteString(w, r.body)
	if r.ending == closeSilent {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func setFields(h http.Header, fields []field) {
	for _, f := range fields {
		h.Add(f.name, f.value)
	}
}
