package sender

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// BenchmarkSend compares an attempt with the same request by a bare net/http client, both with 1 KiB of payload and 64 at a
// time, to a receiver in this process. "ratio" is the sender's time over the client's.
func BenchmarkSend(b *testing.B) {
	url := benchServer(b)
	payload := bytes.Repeat([]byte("x"), 1<<10)
	header := http.Header{
		"Content-Type":    {"application/json"},
		"Idempotency-Key": {`"0b2c9e52-5a9b-4e0c-8f7f-2d6b7f1f3c55"`},
		"Signature-Input": {`sig1=("@method" "@target-uri" "content-digest" "idempotency-key");created=1700000000`},
		"Signature":       {`sig1=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:`},
		"Content-Digest":  {`sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:`},
		"User-Agent":      {"Godwit"},
	}
	var perClient atomic.Int64

	b.Run("client", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}
		defer client.CloseIdleConnections()
		inParallel(b, func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), DefaultTimeout)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "POST", url, bytes.NewReader(payload))
			if err != nil {
				return false
			}
			req.Header = header
			resp, err := client.Do(req)
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			_, err = io.ReadAll(resp.Body)
			return err == nil && resp.StatusCode == 200
		})
		perClient.Store(b.Elapsed().Nanoseconds() / int64(b.N))
	})

	b.Run("sender", func(b *testing.B) {
		s := newSender(b)
		inParallel(b, func() bool {
			x := send(s, &Request{URL: url, Header: header, Body: payload, Prepare: func(*http.Request, bool) error { return nil }})
			return x.Failure == nil && x.Status == 200
		})
		if base := perClient.Load(); base > 0 {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds()/int64(b.N))/float64(base), "ratio")
		}
	})
}

func inParallel(b *testing.B, send func() bool) {
	b.ReportAllocs()
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if !send() {
				b.Error("attempt failed")
				return
			}
		}
	})
}

func benchServer(b *testing.B) string {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "ok")
	})}
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(ln) }()
	b.Cleanup(func() { srv.Close(); <-done })
	return "http://" + ln.Addr().String() + "/hook"
}
