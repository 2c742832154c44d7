package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Relay is the baseline: it accepts a POST, keeps it in memory, answers 202 and forwards it with net/http. It checks, stores,
// signs and retries nothing; a crash loses all events. It has the minimum of any relay: a deadline for each request and a limit
// of its queue, equal to godwit's for one endpoint. It runs until ctx ends.
func Relay(ctx context.Context, l net.Listener, target string) error {
	const workers = 64
	type item struct {
		body        []byte
		contentType string
	}
	queue := make(chan item, 1024)
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConns: 2 * workers, MaxIdleConnsPerHost: 2 * workers}}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case it := <-queue:
					forward(ctx, client, target, it.contentType, it.body)
				}
			}
		})
	}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := make([]byte, max(r.ContentLength, 0))
			if _, err := io.ReadFull(r.Body, body); err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			queue <- item{body, r.Header.Get("Content-Type")}
			w.WriteHeader(http.StatusAccepted)
		}),
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		server.Close()
	}()
	err := server.Serve(l)
	<-stopped
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func forward(ctx context.Context, client *http.Client, target, contentType string, body []byte) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := client.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}
