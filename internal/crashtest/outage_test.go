package crashtest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// cable is the connection between the server and its database: a TCP relay that a test can cut and mend.
type cable struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]struct{}
}

func layCable(t *testing.T, target string) *cable {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() { l.Close(); c.set(true) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.carry(conn)
		}
	}()
	return c
}

func (c *cable) carry(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer to.Close()
	c.mu.Lock()
	if c.cut {
		c.mu.Unlock()
		return
	}
	c.conns[from] = struct{}{}
	c.mu.Unlock()
	go func() {
		_, _ = io.Copy(to, from)
		to.Close()
	}()
	_, _ = io.Copy(from, to)
	c.mu.Lock()
	delete(c.conns, from)
	c.mu.Unlock()
}

// set cuts the cable, with everything that is under way on it, or mends it.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	if cut {
		for conn := range c.conns {
			conn.Close()
		}
	}
}

// With the database gone, ingest says 503 and when to come back, and readiness says so too; when it is back, everything that
// was acknowledged before, between and after arrives.
func TestDatabaseAway(t *testing.T) {
	direct, err := url.Parse(apptest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	c := layCable(t, direct.Host)
	direct.Host = c.listener.Addr().String()
	r := newReceiver(t)
	srv := apptest.Start(t, apptest.Options{Store: direct.String()})
	srv.Endpoint(r.URL, apptest.Fields{"policy": map[string]any{"base_seconds": 0.05, "cap_seconds": 0.2, "circuit_after": 0}})

	var acknowledged []string
	post := func(n int) *apptest.Response {
		key := fmt.Sprintf(`"outage-event-%08d"`, n)
		answer := srv.Call(apptest.Call{Method: http.MethodPost, Path: "/v1/events?type=outage.test", Body: `{"n":1}`,
			Header: map[string]string{"Idempotency-Key": key, "Content-Type": "application/json"}})
		if answer.Status == http.StatusAccepted {
			acknowledged = append(acknowledged, key)
		}
		return answer
	}
	n := 0
	for range 3 {
		for range 20 {
			n++
			if answer := post(n); answer.Status != http.StatusAccepted {
				t.Fatalf("with the database there: %d %s", answer.Status, answer.Body)
			}
		}
		c.set(true)
		n++
		answer := post(n)
		if answer.Status != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
			t.Fatalf("with the database away: %d, Retry-After %q, %s", answer.Status, answer.Header.Get("Retry-After"), answer.Body)
		}
		if ready := srv.Call(apptest.Call{Path: "/readyz"}); ready.Status != http.StatusServiceUnavailable {
			t.Errorf("ready with the database away: %d", ready.Status)
		}
		c.set(false)
		for post(n).Status != http.StatusAccepted { // the same key, until it is taken
		}
	}
	r.await(t, acknowledged)
}
