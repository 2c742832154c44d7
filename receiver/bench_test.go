//go:build unix

package receiver_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/godwit-hq/godwit/receiver"
)

// discard is a response that goes nowhere.
type discard struct{ header http.Header }

func (w *discard) Header() http.Header         { return w.header }
func (w *discard) Write(p []byte) (int, error) { return len(p), nil }
func (w *discard) WriteHeader(int)             {}

const benchRequests = 4096

// benchBody is a payload of 1 KiB.
func benchBody(i int) string {
	head := fmt.Sprintf(`{"id":"evt_%026d","type":"order.paid","api_version":"2026-01-01","data":{"object":{"text":"`, i)
	const tail = `"}}}`
	return head + strings.Repeat("x", 1024-len(head)-len(tail)) + tail
}

// BenchmarkReceive measures what a receiver adds to a request of 1 KiB: authentication, freshness, key, reservation in
// memory, a handler that does nothing, completion. The aim for schemes with a shared secret is less than 20 µs over the
// baseline, a handler that reads the body and answers. cpu-ns/op is what the process used, garbage collection included;
// unlike ns/op it does not depend on what else the machine does.
func BenchmarkReceive(b *testing.B) {
	b.Run("baseline", func(b *testing.B) {
		requests, bodies := benchMake(mechanisms()[1])
		h := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			_, _ = io.ReadAll(req.Body)
			w.WriteHeader(http.StatusNoContent)
		})
		benchServe(b, func() http.Handler { return h }, requests, bodies)
	})
	for _, m := range mechanisms() {
		b.Run(m.name, func(b *testing.B) {
			requests, bodies := benchMake(m)
			benchServe(b, func() http.Handler {
				r, err := receiver.New(receiver.Options{
					Scheme: m.scheme, Handler: accept, Clock: at(start.Unix()), Log: slog.New(slog.DiscardHandler), AllowHTTP: true,
					Store: receiver.NewMemory(receiver.MemoryOptions{}),
				})
				if err != nil {
					b.Fatal(err)
				}
				return r
			}, requests, bodies)
		})
	}
}

// benchMake signs as many different requests as one store sees.
func benchMake(m mechanism) ([]*http.Request, []string) {
	requests, bodies := make([]*http.Request, benchRequests), make([]string, benchRequests)
	for i := range requests {
		e := event{id: fmt.Sprintf("key-of-sixteen-%d", i), body: benchBody(i), path: "/hooks", key: "shop-1"}
		req := httptest.NewRequest("POST", "http://hooks.example.com/hooks", nil)
		req.Header.Set("Content-Type", "application/json")
		if m.name == "eds" || m.name == "twilio" { // they sign the address
			req.RequestURI = ""
			m.sign(req, e, start, true)
			req.RequestURI = req.URL.RequestURI()
		} else {
			m.sign(req, e, start, true)
		}
		req.ContentLength = int64(len(e.body))
		requests[i], bodies[i] = req, e.body
	}
	return requests, bodies
}

func benchServe(b *testing.B, open func() http.Handler, requests []*http.Request, bodies []string) {
	b.ReportAllocs()
	b.SetBytes(1024)
	w := &discard{header: http.Header{}}
	body := bytes.NewReader(nil)
	var h http.Handler
	b.ResetTimer() // to sign the requests was the sender's work
	used := -cpuTime()
	for i := range b.N {
		n := i % benchRequests
		if n == 0 {
			b.StopTimer()
			used += cpuTime()
			h = open()
			used -= cpuTime()
			b.StartTimer()
		}
		body.Reset([]byte(bodies[n]))
		req := requests[n]
		req.Body = io.NopCloser(body)
		clear(w.header)
		h.ServeHTTP(w, req)
	}
	b.ReportMetric(float64(used+cpuTime())/float64(b.N), "cpu-ns/op")
}

// cpuTime is what the process has used, in nanoseconds.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkVerify measures verification alone.
func BenchmarkVerify(b *testing.B) {
	for _, m := range mechanisms() {
		b.Run(m.name, func(b *testing.B) {
			requests, bodies := benchMake(m)
			v, err := receiver.NewVerifier(m.scheme, receiver.VerifyOptions{Clock: at(start.Unix())})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				n := i % benchRequests
				if _, err := v.Verify(requests[n].Context(), requests[n], []byte(bodies[n])); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
