package sender

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// newHTTPServer serves 200 by net/http with TLS and returns its URL.
func newHTTPServer(t *testing.T, ln net.Listener, proto string, saw func(tls.ConnectionState)) string {
	t.Helper()
	srv := &http.Server{
		TLSConfig: serverTLS(proto),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			saw(*r.TLS)
		}),
	}
	if proto == "http/1.1" {
		srv.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	done := make(chan struct{})
	go func() { defer close(done); srv.ServeTLS(ln, "", "") }()
	t.Cleanup(func() { srv.Close(); <-done })
	return "https://" + ln.Addr().String() + "/hook"
}

// An h2Stub plays a scripted HTTP/2 receiver frame by frame.
type h2Stub struct {
	*stub
	streams  atomic.Int32 // requests begun, over all connections
	settings chan map[http2.SettingID]uint32
}

// An h2Peer is one connection to it.
type h2Peer struct {
	*peer
	*http2.Framer
	stub *h2Stub
}

// newH2Stub calls play for every request, when its header and body have been read.
func newH2Stub(t *testing.T, play func(p *h2Peer, stream uint32)) *h2Stub {
	h := &h2Stub{settings: make(chan map[http2.SettingID]uint32, 16)}
	h.stub = newStub(t, serverTLS("h2"), func(p *peer) {
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(p.br, preface); err != nil {
			return
		}
		hp := &h2Peer{peer: p, Framer: http2.NewFramer(p.Conn, p.br), stub: h}
		hp.WriteSettings()
		hp.serve(play)
	})
	return h
}

func (p *h2Peer) serve(play func(*h2Peer, uint32)) {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				seen := map[http2.SettingID]uint32{}
				f.ForeachSetting(func(s http2.Setting) error { seen[s.ID] = s.Val; return nil })
				select {
				case p.stub.settings <- seen:
				default:
				}
				p.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			p.stub.streams.Add(1)
			if f.StreamEnded() {
				play(p, f.StreamID)
			}
		case *http2.DataFrame:
			if f.StreamEnded() {
				play(p, f.StreamID)
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				p.WritePing(true, f.Data)
			}
		}
	}
}

// answer writes response headers.
func (p *h2Peer) answer(stream uint32, end bool, fields ...string) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	b, first := block.Bytes(), true
	for first || len(b) > 0 {
		chunk := b[:min(len(b), 16<<10)]
		b = b[len(chunk):]
		if first {
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: chunk, EndStream: end, EndHeaders: len(b) == 0})
		} else {
			p.WriteContinuation(stream, len(b) == 0, chunk)
		}
		first = false
	}
}

func TestHTTP2(t *testing.T) {
	st := newH2Stub(t, func(p *h2Peer, stream uint32) {
		p.answer(stream, false, ":status", "103", "link", "</x>")
		p.answer(stream, false, ":status", "202", "x-reply", "yes")
		p.WriteData(stream, true, []byte("hello"))
	})
	s := newSender(t)
	for i := range 2 {
		x := send(s, post(st.secureURL()))
		wantStatus(t, x, 202)
		if x.Proto != "HTTP/2.0" || string(x.Body) != "hello" || x.Header.Get("X-Reply") != "yes" || x.Reused != (i == 1) {
			t.Errorf("%+v", x)
		}
		if x.RemoteAddr != st.Addr().String() {
			t.Errorf("remote %q", x.RemoteAddr)
		}
	}
}

var resetCodes = []http2.ErrCode{
	http2.ErrCodeNo, http2.ErrCodeProtocol, http2.ErrCodeInternal, http2.ErrCodeRefusedStream, http2.ErrCodeCancel,
	http2.ErrCodeEnhanceYourCalm,
}

// net/http sends a request again after REFUSED_STREAM, PROTOCOL_ERROR and GOAWAY, if it can rewind the body or there is none.
func TestStreamReset(t *testing.T) {
	trace.Covers(t, "EDS-VER-3", "EDS-ATT-1")
	type ending struct {
		status int
		kinds  []godwit.FailureKind
		play   func(p *h2Peer, stream uint32)
	}
	reset := []godwit.FailureKind{godwit.FailureStreamReset}
	endings := map[string]ending{
		"GOAWAY":             {0, reset, func(p *h2Peer, _ uint32) { p.WriteGoAway(0, http2.ErrCodeNo, nil); p.Close() }},
		"GOAWAY, stays open": {0, reset, func(p *h2Peer, _ uint32) { p.WriteGoAway(0, http2.ErrCodeNo, nil) }},
		"GOAWAY with error":  {0, reset, func(p *h2Peer, _ uint32) { p.WriteGoAway(0, http2.ErrCodeInternal, nil); p.Close() }},
		"GOAWAY, stream seen": {0, reset, func(p *h2Peer, stream uint32) {
			p.WriteGoAway(stream, http2.ErrCodeNo, nil)
			p.Close()
		}},
		"GOAWAY after status": {200, reset, func(p *h2Peer, stream uint32) {
			p.answer(stream, false, ":status", "200")
			p.WriteGoAway(stream, http2.ErrCodeNo, nil)
			p.Close()
		}},
		"closed": {0, []godwit.FailureKind{godwit.FailureReset}, func(p *h2Peer, _ uint32) { p.Close() }},
		"closed after status": {200, []godwit.FailureKind{godwit.FailureTruncated}, func(p *h2Peer, stream uint32) {
			p.answer(stream, false, ":status", "200")
			p.Close()
		}},
		"shorter than declared": {200, []godwit.FailureKind{godwit.FailureTruncated}, func(p *h2Peer, stream uint32) {
			p.answer(stream, false, ":status", "200", "content-length", "100")
			p.WriteData(stream, true, []byte("abc"))
		}},
	}
	for _, code := range resetCodes {
		endings["RST_STREAM "+code.String()] = ending{0, reset, func(p *h2Peer, stream uint32) { p.WriteRSTStream(stream, code) }}
		endings["status, RST_STREAM "+code.String()] = ending{200, reset, func(p *h2Peer, stream uint32) {
			p.answer(stream, false, ":status", "200")
			p.WriteData(stream, false, []byte("part"))
			p.WriteRSTStream(stream, code)
		}}
	}
	for name, e := range endings {
		for _, kept := range []bool{false, true} {
			for _, payload := range []string{`{"n":1}`, ""} {
				t.Run(fmt.Sprintf("%s/kept=%v/%d bytes", name, kept, len(payload)), func(t *testing.T) {
					first := kept
					st := newH2Stub(t, func(p *h2Peer, stream uint32) {
						if first {
							first = false
							p.answer(stream, true, ":status", "200")
							return
						}
						e.play(p, stream)
					})
					s, r, want := newSender(t), post(st.secureURL()), int32(1)
					r.Body = []byte(payload)
					if kept {
						wantStatus(t, send(s, r), 200)
						want++
					}
					x := send(s, r)
					wantFailure(t, x, e.kinds[0], true)
					if x.Status != e.status || x.Proto != "HTTP/2.0" {
						t.Errorf("status %d over %s; want %d", x.Status, x.Proto, e.status)
					}
					if n := st.streams.Load(); n != want {
						t.Errorf("%d streams for %d attempts", n, want)
					}
				})
			}
		}
	}
}

// Many attempts on one connection, some of them broken: each has its own outcome.
func TestStreamsDoNotMix(t *testing.T) {
	trace.Covers(t, "EDS-VER-2")
	const n = 50
	all := sync.WaitGroup{}
	all.Add(n)
	var conns atomic.Int32
	srv := &http.Server{
		TLSConfig: serverTLS("h2"),
		ConnState: func(_ net.Conn, st http.ConnState) {
			if st == http.StateNew {
				conns.Add(1)
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			i, err := strconv.Atoi(r.Header.Get("X-Number"))
			if err != nil {
				return // the first one, alone
			}
			all.Done()
			all.Wait() // all are on the connection at once
			if i%10 == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(200 + i)
			fmt.Fprintf(w, "answer %d", i)
		}),
	}
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	served := make(chan struct{})
	go func() { defer close(served); srv.ServeTLS(ln, "", "") }()
	t.Cleanup(func() { srv.Close(); <-served })

	s := newSender(t)
	url := "https://" + ln.Addr().String() + "/"
	wantStatus(t, send(s, post(url)), 200)
	var wg sync.WaitGroup
	results := make([]godwit.Exchange, n)
	for i := range n {
		wg.Go(func() {
			r := post(url)
			r.Header.Set("X-Number", strconv.Itoa(i))
			results[i] = send(s, r)
		})
	}
	wg.Wait()
	for i, x := range results {
		if i%10 == 0 {
			wantFailure(t, x, godwit.FailureStreamReset, true)
			continue
		}
		wantStatus(t, x, 200+i)
		if want := "answer " + strconv.Itoa(i); i != 4 && i != 5 && string(x.Body) != want {
			t.Errorf("attempt %d got %q", i, x.Body)
		}
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections", conns.Load())
	}
}

func TestNoServerPush(t *testing.T) {
	trace.Covers(t, "EDS-VER-6")
	st := newH2Stub(t, func(p *h2Peer, stream uint32) {
		var block bytes.Buffer
		enc := hpack.NewEncoder(&block)
		for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "x.test"}, {":path", "/"}} {
			enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		p.WritePushPromise(http2.PushPromiseParam{StreamID: stream, PromiseID: 2, BlockFragment: block.Bytes(), EndHeaders: true})
		p.answer(stream, true, ":status", "200")
	})
	x := send(newSender(t), post(st.secureURL()))
	if x.Failure == nil || !x.Failure.Sent {
		t.Errorf("a pushed request was taken: status %d", x.Status)
	}
	seen := <-st.settings
	if v, ok := seen[http2.SettingEnablePush]; !ok || v != 0 {
		t.Errorf("SETTINGS_ENABLE_PUSH = %d, sent %v", v, ok)
	}
}

func TestHTTP2Limits(t *testing.T) {
	// A little too large is an error of the stream, by far too large one of the connection.
	for size, kind := range map[int]godwit.FailureKind{3300: godwit.FailureProtocol, 8 << 10: godwit.FailureStreamReset} {
		t.Run("header of 20 times "+strconv.Itoa(size), func(t *testing.T) {
			st := newH2Stub(t, func(p *h2Peer, stream uint32) {
				fields := []string{":status", "200"}
				for i := range 20 {
					fields = append(fields, "x-"+strconv.Itoa(i), strings.Repeat("~", size))
				}
				p.answer(stream, true, fields...)
			})
			wantFailure(t, send(newSender(t), post(st.secureURL())), kind, true)
		})
	}
	t.Run("body over the cap", func(t *testing.T) {
		st := newH2Stub(t, func(p *h2Peer, stream uint32) {
			p.answer(stream, false, ":status", "500")
			for range 5 {
				p.WriteData(stream, false, make([]byte, 16<<10))
			}
		})
		x := send(newSender(t), post(st.secureURL()))
		wantStatus(t, x, 500)
		if !x.BodyCapped || len(x.Body) != DefaultMaxResponseBody {
			t.Errorf("capped %v, %d bytes", x.BodyCapped, len(x.Body))
		}
	})
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		st := newH2Stub(t, func(*h2Peer, uint32) {})
		wantFailure(t, sendAndExpire(newSender(t), post(st.secureURL())), godwit.FailureTimeout, true)
	})
	t.Run("reply before the request is sent", func(t *testing.T) {
		big := bytes.Repeat([]byte("x"), 1<<20) // more than the window: the sender waits for leave to go on
		st := newStub(t, serverTLS("h2"), func(p *peer) {
			io.ReadFull(p.br, make([]byte, len(http2.ClientPreface)))
			hp := &h2Peer{peer: p, Framer: http2.NewFramer(p.Conn, p.br)}
			hp.WriteSettings()
			for {
				f, err := hp.ReadFrame()
				if err != nil {
					return
				}
				if h, ok := f.(*http2.HeadersFrame); ok {
					hp.answer(h.StreamID, false, ":status", "413")
					hp.WriteData(h.StreamID, true, []byte("big"))
					hp.WriteRSTStream(h.StreamID, http2.ErrCodeNo)
				}
			}
		})
		r := post(st.secureURL())
		r.Body = big
		x := send(newSender(t), r)
		wantStatus(t, x, 413)
		if string(x.Body) != "big" {
			t.Errorf("body %q", x.Body)
		}
	})
}
