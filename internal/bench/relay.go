package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// RelayOptions configure the baseline.
type RelayOptions struct {
	// Targets are the URLs to forward to: a post to /0007 goes to the eighth, a post to / to the first. Required.
	Targets []string
	// Copies, if not zero, makes the relay forward each post so many times: to target/0, target/1 and so on.
	Copies int
	// CAFile has the certificate authority of https targets. Defaults to none.
	CAFile string
}

const relayWorkers = 64

// item is a request that the relay has taken.
type item struct {
	target      string
	contentType string
	body        []byte
}

// Relay is the baseline: it accepts a POST, keeps it in memory, answers 202 and forwards it with net/http. It checks, stores,
// signs and retries nothing; a crash loses all events. It has the minimum of any relay: a deadline for each request and a limit
// of its queue, equal to godwit's for one endpoint. It runs until ctx ends.
func Relay(ctx context.Context, l net.Listener, o RelayOptions) error {
	client, err := relayClient(o.CAFile)
	if err != nil {
		return err
	}
	queue := make(chan item, 1024)
	var wg sync.WaitGroup
	for range relayWorkers {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case it := <-queue:
					forward(ctx, client, it)
				}
			}
		})
	}
	put := func(it item) {
		select {
		case queue <- it:
		case <-ctx.Done():
		}
	}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := make([]byte, max(r.ContentLength, 0))
			if _, err := io.ReadFull(r.Body, body); err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")) // "/" is the first
			it := item{o.Targets[n%len(o.Targets)], r.Header.Get("Content-Type"), body}
			if o.Copies == 0 {
				put(it)
			} else {
				go fan(it, o.Copies, put)
			}
			w.WriteHeader(http.StatusAccepted)
		}),
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		server.Close()
	}()
	err = server.Serve(l)
	<-stopped
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// relayClient is an ordinary client with as many connections as there are workers. Over https it speaks HTTP/2 if the target
// does, and resumes sessions.
func relayClient(caFile string) (*http.Client, error) {
	transport := &http.Transport{MaxIdleConns: 4096, MaxIdleConnsPerHost: 2 * relayWorkers, ForceAttemptHTTP2: true}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	}
	return &http.Client{Timeout: 30 * time.Second, Transport: transport}, nil
}

// fan queues a post for each of its receivers.
func fan(it item, copies int, put func(item)) {
	base := it.target
	for i := range copies {
		it.target = base + strconv.Itoa(i)
		put(it)
	}
}

func forward(ctx context.Context, client *http.Client, it item) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, it.target, bytes.NewReader(it.body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", it.contentType)
	resp, err := client.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// startRelay runs the relay as a process of its own.
func (b *bench) startRelay(ctx context.Context, o RelayOptions) (*process, error) {
	args := []string{"bench-relay", "--target", strings.Join(o.Targets, ",")}
	if o.Copies > 0 {
		args = append(args, "--copies", strconv.Itoa(o.Copies))
	}
	if o.CAFile != "" {
		args = append(args, "--ca-file", o.CAFile)
	}
	return start(ctx, b.o.Executable, cleanEnvironment(), args...)
}
