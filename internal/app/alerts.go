package app

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/godwit-hq/godwit/internal/alert"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// alerts holds one queue for each way to alert people, so that a slow mail server does not delay the others.
type alerts []*alert.Queue

// loggedPerMinute is how many alerts of a tenant are logged in a minute; the rest is summed up.
const loggedPerMinute = 60

func newAlerts(s *services, url string) (alerts, error) {
	var queues alerts
	add := func(n alert.Notifier, perMinute int) error {
		queue, err := alert.NewQueue(alert.Config{Store: s.store, Notifier: n, Clock: s.clock, Log: s.log, PerMinute: perMinute})
		queues = append(queues, queue)
		return err
	}
	if err := add(alert.Log{Log: s.log}, loggedPerMinute); err != nil {
		return nil, err
	}
	if s.cfg.SMTP.URL == "" {
		return queues, nil
	}
	roots, err := rootCAs(s.cfg.CAFile)
	if err != nil {
		return nil, err
	}
	mail, err := alert.NewMail(alert.MailConfig{
		URL: s.cfg.SMTP.URL, From: s.cfg.SMTP.From, Now: s.clock.Now, RootCAs: roots,
		Link: strings.TrimSuffix(url, "/") + "/v1/notices?open=true",
	})
	if err != nil {
		return nil, err
	}
	return queues, add(mail, s.cfg.SMTP.PerMinute)
}

// rootCAs returns the system's authorities and those of a file. Without a file it returns nil, which means the system's.
func rootCAs(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("ca-file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca-file: %s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// post adds a stored notice to every queue. It does not block.
func (d alerts) post(n godwit.Notice) {
	for _, queue := range d {
		queue.Post(n)
	}
}

// start runs the queues. The returned function stops them after they have sent the waiting alerts.
func (d alerts) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, queue := range d {
		running.Go(func() { _ = queue.Run(ctx) }) // it returns only when ctx ends
	}
	return func() {
		cancel()
		running.Wait()
	}
}
