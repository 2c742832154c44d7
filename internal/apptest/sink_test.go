package apptest

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
)

func post(t *testing.T, c *http.Client, url, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.GetBody = nil
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

func newClient(t *testing.T, transport *http.Transport) *http.Client {
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func TestSinkPlaysItsScript(t *testing.T) {
	s := NewSink(t)
	c := newClient(t, &http.Transport{})
	s.Script("/a", RetryAfter(503, "2"), Redirect(307, s.URL("/b")), Status(200).Body("text/plain", "fine"))
	for _, want := range []int{503, 307, 200, 200} {
		resp, _, err := post(t, c, s.URL("/a?x=1"), "hello")
		if err != nil || resp.StatusCode != want {
			t.Fatalf("got %v, %v; want %d", resp, err, want)
		}
	}
	seen := s.WaitOn("/a", 4)
	for i, r := range seen {
		if r.N != i+1 || string(r.Body) != "hello" || r.Conn != 1 || r.Path != "/a?x=1" || !strings.HasPrefix(r.Head, "POST /a?x=1 HTTP/1.1\r\n") {
			t.Errorf("request %d recorded as %+v", i, r)
		}
	}
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestSinkMisbehaves(t *testing.T) {
	gate := make(chan struct{})
	for name, tc := range map[string]struct {
		reply Reply
		check func(resp *http.Response, body string, err error) bool
	}{
		"hangup":  {Hangup(), func(_ *http.Response, _ string, err error) bool { return errors.Is(err, io.EOF) }},
		"reset":   {Reset(), func(_ *http.Response, _ string, err error) bool { return err != nil }},
		"partial": {Raw("HTTP/1.1 20"), func(_ *http.Response, _ string, err error) bool { return err != nil }},
		"truncated": {Truncated(200, 10, "abc"), func(_ *http.Response, body string, err error) bool {
			return body == "abc" && errors.Is(err, io.ErrUnexpectedEOF)
		}},
		"gate":  {Status(204).Until(gate), func(r *http.Response, _ string, err error) bool { return err == nil && r.StatusCode == 204 }},
		"close": {Status(200).ThenClose(), func(r *http.Response, _ string, err error) bool { return err == nil && r.Close }},
		"early": {Status(200).Early(103, "Link", "</x>").Early(102), func(r *http.Response, _ string, err error) bool { return err == nil && r.StatusCode == 200 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSink(t)
			s.Script("/", tc.reply)
			if name == "gate" {
				go func() { s.Wait(1); close(gate) }()
			}
			resp, body, err := post(t, newClient(t, &http.Transport{}), s.URL("/"), "x")
			if !tc.check(resp, body, err) {
				t.Errorf("got %v %q %v", resp, body, err)
			}
		})
	}
}

func TestSinkStallsUntilTheSenderLeaves(t *testing.T) {
	s := NewSink(t)
	s.Script("/", Stall())
	c := newClient(t, &http.Transport{})
	done := make(chan error, 1)
	go func() {
		_, _, err := post(t, c, s.URL("/"), "x")
		done <- err
	}()
	s.Wait(1)
	s.Close()
	if err := <-done; err == nil {
		t.Error("a stalled request was answered")
	}
}

func TestSinkHangsUpBehindAKeptConnection(t *testing.T) {
	s := NewSink(t)
	c := newClient(t, &http.Transport{})
	s.Script("/", Status(200), Status(200).ThenHangup(), Status(200))
	for range 3 {
		if _, _, err := post(t, c, s.URL("/"), "x"); err != nil && !errors.Is(err, io.EOF) {
			t.Logf("as meant: %v", err)
		}
	}
	if s.Connections() > 2 {
		t.Errorf("%d connections", s.Connections())
	}
}

func TestSinkSpeaksTLSAndHTTP2(t *testing.T) {
	cert, key := ClientCertificate(t, "sender")
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		options []SinkOption
		proto   string
		fails   bool
	}{
		"tls":       {[]SinkOption{WithTLS(SinkTLS{})}, "HTTP/1.1", false},
		"client":    {[]SinkOption{WithTLS(SinkTLS{RequireClientCertificate: true})}, "HTTP/1.1", false},
		"expired":   {[]SinkOption{WithTLS(SinkTLS{Expired: true})}, "", true},
		"untrusted": {[]SinkOption{WithTLS(SinkTLS{Untrusted: true})}, "", true},
		"name":      {[]SinkOption{WithTLS(SinkTLS{Names: []string{"elsewhere.test"}})}, "", true},
		"http2":     {[]SinkOption{WithHTTP2()}, "HTTP/2.0", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSink(t, tc.options...)
			s.Script("/", Status(202).Early(103).Body("text/plain", "ok"), Hangup())
			c := newClient(t, &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: CAPool(t), Certificates: []tls.Certificate{pair}}})
			resp, body, err := post(t, c, s.URL("/"), "hello")
			if tc.fails {
				if err == nil {
					t.Error("connected")
				}
				return
			}
			if err != nil || resp.StatusCode != 202 || body != "ok" {
				t.Fatalf("got %v %q %v", resp, body, err)
			}
			r := s.Wait(1)[0]
			if r.Proto != tc.proto || r.TLS == nil || string(r.Body) != "hello" {
				t.Errorf("recorded %+v", r)
			}
			if name == "client" && len(r.TLS.PeerCertificates) != 1 {
				t.Error("no client certificate recorded")
			}
			if _, _, err := post(t, c, s.URL("/"), "again"); err == nil {
				t.Error("hang-up was answered")
			}
		})
	}
}

func TestSinkPassesEarlyResponsesOn(t *testing.T) {
	s := NewSink(t)
	s.Script("/", Status(200).Early(103, "Link", "</x>").Early(102))
	var early []int
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { early = append(early, code); return nil }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, s.URL("/"), strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := newClient(t, &http.Transport{}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(early) != 2 || early[0] != 103 || early[1] != 102 {
		t.Errorf("early responses %v", early)
	}
}
