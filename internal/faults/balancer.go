//go:build unix

package faults

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"
)

// startBalancer starts a server that gives each request to a node that was ready at the last look. The result stands for it as a node.
func startBalancer(t testing.TB, nodes []*Node) *Node {
	t.Helper()
	var mu sync.Mutex
	ready := map[*Node]bool{}
	stop := make(chan struct{})
	var looking sync.WaitGroup
	for _, n := range nodes {
		looking.Go(func() {
			for {
				is := n.Ready()
				mu.Lock()
				ready[n] = is
				mu.Unlock()
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{MaxIdleConnsPerHost: 32},
		Rewrite: func(r *httputil.ProxyRequest) {
			mu.Lock()
			defer mu.Unlock()
			choice := nodes[rand.IntN(len(nodes))]
			for _, i := range rand.Perm(len(nodes)) {
				if ready[nodes[i]] {
					choice = nodes[i]
				}
			}
			target, err := url.Parse(choice.URL)
			if err != nil {
				panic(err) // of ours
			}
			r.SetURL(target)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte(err.Error()))
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(func() {
		server.Close()
		close(stop)
		looking.Wait()
	})
	return &Node{Name: balancer, URL: server.URL}
}
