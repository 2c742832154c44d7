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
		// The search may take long on a busy machine, and no connection is accepted meanwhile: later requests would arrive late.
		name := make(chan string, 1)
		go func() { name <- r.sender(conn) }()
		return context.WithValue(ctx, nodeKey{}, sync.OnceValue(func() string { return <-name }))
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
	a.From = r.h.Now()
	if sender, ok := req.Context().Value(nodeKey{}).(func() string); ok {
		a.Node = sender() // before the answer, after which the node may close the connection
	}
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
	there, ok := conn.RemoteAddr().(*net.TCPAddr)
	here, known := conn.LocalAddr().(*net.TCPAddr)
	if !ok || !known {
		return ""
	}
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	for _, inode := range sockets(string(table), there.Port, here.Port) {
		if node := r.holder("socket:[" + inode + "]"); node != "" {
			return node
		}
	}
	return ""
}

// sockets finds the sockets of a connection in the system's table. A port alone is not enough: connections of other processes to
// other servers may share it.
func sockets(table string, local, remote int) (inodes []string) {
	from, to := fmt.Sprintf(":%04X", local), fmt.Sprintf(":%04X", remote)
	for line := range strings.Lines(table) {
		// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
		if f := strings.Fields(line); len(f) > 9 && strings.HasSuffix(f[1], from) && strings.HasSuffix(f[2], to) {
			inodes = append(inodes, f[9])
		}
	}
	return inodes
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
