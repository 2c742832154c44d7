//go:build unix

package faults

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// Receivers are the endpoints' servers: one address, a path for each endpoint. One answer in twenty is a failure.
type Receivers struct {
	*httptest.Server
	h     *History
	nodes func() []*Node

	mu      sync.Mutex
	hanging map[string]chan struct{} // endpoint → closed when it answers again
}

type nodeKey struct{}

// StartReceivers starts the server. It ends with the test.
func StartReceivers(t testing.TB, h *History, nodes func() []*Node) *Receivers {
	r := &Receivers{h: h, nodes: nodes, hanging: map[string]chan struct{}{}}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(r.take))
	r.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, nodeKey{}, r.sender(conn))
	}
	r.Start()
	t.Cleanup(r.Close)
	return r
}

// Hang lets an endpoint answer no request until the returned function is called.
func (r *Receivers) Hang(endpoint string) (answer func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	again := make(chan struct{})
	r.hanging[endpoint] = again
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		close(again)
		delete(r.hanging, endpoint)
	}
}

func (r *Receivers) take(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		return
	}
	a := Arrival{Endpoint: strings.TrimPrefix(req.URL.Path, "/"), Key: strings.Trim(req.Header.Get("Idempotency-Key"), `"`)}
	a.Node, _ = req.Context().Value(nodeKey{}).(string)
	a.From = r.h.Now()
	if _, err := io.Copy(io.Discard, req.Body); err == nil {
		a.Status = r.answer(req.Context(), a.Endpoint)
	}
	a.To = r.h.Now()
	if a.Status != unknown {
		w.WriteHeader(a.Status)
	}
	add(r.h, &r.h.Arrivals, a)
}

// answer is the status to answer with. A request that hung is answered with a failure, since its node may have given up at the same moment.
func (r *Receivers) answer(ctx context.Context, endpoint string) int {
	r.mu.Lock()
	again := r.hanging[endpoint]
	r.mu.Unlock()
	if again != nil {
		select {
		case <-again:
			return http.StatusServiceUnavailable
		case <-ctx.Done():
			return unknown
		}
	}
	if rand.IntN(20) == 0 {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// sender names the node at the other end of a connection, by the system's table of sockets; empty where there is none.
func (r *Receivers) sender(conn net.Conn) string {
	address, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	local := fmt.Sprintf(":%04X", address.Port)
	for line := range strings.Lines(string(table)) {
		// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
		if f := strings.Fields(line); len(f) > 9 && strings.HasSuffix(f[1], local) {
			if node := r.holder("socket:[" + f[9] + "]"); node != "" {
				return node
			}
		}
	}
	return ""
}

// holder names the node that has the socket open.
func (r *Receivers) holder(socket string) string {
	for _, n := range r.nodes() {
		dir := fmt.Sprintf("/proc/%d/fd", n.Process())
		files, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, file := range files {
			if target, err := os.Readlink(dir + "/" + file.Name()); err == nil && target == socket {
				return n.Name
			}
		}
	}
	return ""
}
