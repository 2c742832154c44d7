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

// alerts are the ways by which people are told of notices: one queue each, so that a mail server that is slow keeps no other way
// waiting. A way that is added is one more queue.
type alerts []*alert.Queue

// loggedPerMinute is how many alerts of a tenant are lines of the log in a minute; the rest is summed up.
const loggedPerMinute = 60

func newAlerts(a *App) (alerts, error) {
	var queues alerts
	add := func(n alert.Notifier, perMinute int) error {
		queue, err := alert.NewQueue(alert.Config{Store: a.store, Notifier: n, Clock: a.clock, Log: a.log, PerMinute: perMinute})
		queues = append(queues, queue)
		return err
	}
	if err := add(alert.Log{Log: a.log}, loggedPerMinute); err != nil {
		return nil, err
	}
	if a.cfg.SMTP.URL == "" {
		return queues, nil
	}
	roots, err := rootCAs(a.cfg.CAFile)
	if err != nil {
		return nil, err
	}
	mail, err := alert.NewMail(alert.MailConfig{
		URL: a.cfg.SMTP.URL, From: a.cfg.SMTP.From, Now: a.clock.Now, RootCAs: roots,
		Link: strings.TrimSuffix(a.url, "/") + "/v1/notices?open=true",
	})
	if err != nil {
		return nil, err
	}
	return queues, add(mail, a.cfg.SMTP.PerMinute)
}

// rootCAs are the system's authorities with those of a file; nil, which is the system's, without a file.
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

// post hands a stored notice to every queue. It does not wait.
func (d alerts) post(n godwit.Notice) {
	for _, queue := range d {
		queue.Post(n)
	}
}

// start runs the queues; the function returned stops them, after they have told what waits.
func (d alerts) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, queue := range d {
		running.Go(func() { _ = queue.Run(ctx) }) // it ends with ctx alone
	}
	return func() {
		cancel()
		running.Wait()
	}
}
