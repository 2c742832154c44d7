package native

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// until repeats a request until the response has the status.
func (h *harness) until(status int, c call) *answer {
	h.t.Helper()
	limited, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	for {
		a := h.do(c)
		if a.status == status {
			return a
		}
		if limited.Err() != nil {
			h.t.Fatalf("still %d, want %d: %s", a.status, status, a.body)
		}
	}
}

// stranger makes another tenant and returns one of its keys.
func (h *harness) stranger(name string) string {
	h.t.Helper()
	tenant, err := h.management.Tenants.Create(context.Background(), godwit.DefaultEnvironment, management.TenantSpec{Name: name})
	must(h.t, err)
	_, token := h.mint(tenant.ID, godwit.AllScopes...)
	return token
}

// openAs sends a request, or the start of one. The test reads the response.
func (h *harness) openAs(token, method, path, more string) (net.Conn, *bufio.Reader) {
	h.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.http.URL, "http://"))
	must(h.t, err)
	h.t.Cleanup(func() { conn.Close() })
	must(h.t, conn.(*net.TCPConn).SetReadBuffer(4096))
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s", method, path, token, more)
	must(h.t, err)
	return conn, bufio.NewReader(conn)
}

// A tenant with large requests in progress is refused another; other tenants are not affected.
func TestIntakeIsBounded(t *testing.T) {
	h := newHarness(t)
	bodies := httpapi.NewQuota(150<<10, 220<<10)
	h.api.handlers.event.bodies, h.api.handlers.batch.bodies = bodies, bodies
	payload := `"` + strings.Repeat("x", 100<<10) + `"`
	post := call{method: "POST", path: "/v1/events?type=a.b", body: payload}
	second, third := h.stranger("second"), h.stranger("third")

	// hold starts a request, and returns once the server reads its body.
	hold := func(token string) (finish func()) {
		conn, answers := h.openAs(token, "POST", "/v1/events?type=slow",
			fmt.Sprintf("Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(payload)))
		status := func(want int) {
			t.Helper()
			resp, err := http.ReadResponse(answers, nil)
			must(t, err)
			if resp.StatusCode != want {
				t.Fatalf("the slow one got %d, want %d", resp.StatusCode, want)
			}
		}
		status(http.StatusContinue)
		return func() {
			_, err := io.WriteString(conn, payload)
			must(t, err)
			status(http.StatusAccepted)
		}
	}
	finish := hold(h.token)
	h.do(post).refused(429, problem.TooManyRequests, "")
	h.do(call{method: "POST", path: "/v1/events?type=a.b", body: `{}`}).want(202) // small bodies are not counted
	h.do(call{method: "POST", path: "/v1/events?type=a.b", body: payload, token: second}).want(202)

	finishSecond := hold(second)
	h.do(call{method: "POST", path: "/v1/events/batch", body: `{"events":[` + payload + `]}`, token: third}).refused(503, problem.Unavailable, "")
	finish()
	finishSecond()
	h.until(202, post)
	h.until(202, call{method: "POST", path: "/v1/events?type=a.b", body: payload, token: second})
}

// The server disconnects a client that starts an export and does not read it, so that the client holds neither memory nor a
// slot for long.
func TestStalledExportIsCutOff(t *testing.T) {
	h := newHarness(t)
	h.api.handlers.export.stall = 100 * time.Millisecond
	h.api.handlers.export.running = httpapi.NewQuota(1, 10)
	receiver := newSink(t, 400)
	h.endpoint(receiver.URL, `"policy":{"disable_after":100}`)
	w := h.watch()
	text := `"` + strings.Repeat("x", 1<<20-2) + `"`
	const letters = 12
	for range letters {
		h.publish("a.b", text)
		w.until(godwit.DeliveryTerminal)
	}
	_, answers := h.openAs(h.token, "GET", "/v1/dead-letters/export", "\r\n")
	// Only the header is read. On a slow machine even that may be cut off.
	_, _ = http.ReadResponse(answers, nil)
	h.until(200, call{method: "HEAD", path: "/v1/dead-letters/export"})

	// A slow machine must not cut off the next one.
	h.api.handlers.export.stall = time.Hour
	read := h.do(call{method: "GET", path: "/v1/dead-letters/export"}).want(200) // a client that reads gets everything
	if n := strings.Count(string(read.body), "\n"); n != letters {
		t.Errorf("%d lines, want %d", n, letters)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	h := newHarness(t)
	h.api.handlers.attempts.running = httpapi.NewQuota(1, 10)
	conn, answers := h.openAs(h.token, "GET", "/v1/attempts/stream", "\r\n")
	_, err := http.ReadResponse(answers, nil)
	must(t, err)
	stream := call{method: "HEAD", path: "/v1/attempts/stream"}
	h.do(stream).want(429)
	conn.Close()
	h.until(200, stream)
}

// The key of a stream is checked periodically, even while attempts keep arriving.
func TestRevokedKeyLosesABusyStream(t *testing.T) {
	h := newHarness(t)
	manual := clock.NewManual(h.clock.Now())
	h.api.handlers.attempts.clock = manual
	h.endpoint(newSink(t, 200).URL)
	key, token := h.mint(h.tenant.ID, godwit.ScopeRead)
	_, answers := h.openAs(token, "GET", "/v1/attempts/stream", "\r\n")
	resp, err := http.ReadResponse(answers, nil)
	must(t, err)
	lines := bufio.NewScanner(resp.Body)
	lines.Scan() // the stream is open from here on
	must(t, h.management.Keys.Revoke(context.Background(), nil, h.tenant.ID, key.ID))
	for n := 0; ; {
		h.publish("a.b", `{}`)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data:") {
		}
		if !strings.HasPrefix(lines.Text(), "data:") {
			break
		}
		if n++; n > 10 {
			t.Fatal("the stream goes on")
		}
		manual.Advance(heartbeat / 3)
	}
}
