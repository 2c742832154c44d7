package alert

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// people is a directory and a notifier that records its alerts and their times.
type people struct {
	mu    sync.Mutex
	told  []Alert
	at    []time.Duration
	start time.Time
	fail  func(try int) error
	tries int
	gate  chan struct{} // nil: sending takes no time
}

func (p *people) Tenant(_ context.Context, id godwit.TenantID) (*godwit.Tenant, error) {
	return &godwit.Tenant{ID: id, Name: "acme", Code: "9F4K7Q", AlertEmails: []string{"ops@example.com"}}, nil
}

func (p *people) Endpoint(_ context.Context, _ godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error) {
	if id.IsZero() {
		return nil, store.ErrNotFound
	}
	return &godwit.Endpoint{ID: id, Code: "X2M8KD", Description: "Orders"}, nil
}

func (p *people) Notify(ctx context.Context, a Alert) error {
	if p.gate != nil {
		select {
		case <-p.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	if p.fail != nil {
		if err := p.fail(p.tries); err != nil {
			return err
		}
	}
	p.told = append(p.told, a)
	p.at = append(p.at, time.Since(p.start))
	return nil
}

func (p *people) heard() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.told)
}

func dead(tenant godwit.TenantID) godwit.Notice {
	return godwit.Notice{ID: godwit.NewNoticeID(noon), TenantID: tenant, EndpointID: godwit.NewEndpointID(noon), Kind: godwit.NoticeDeadLetter}
}

// queue runs a queue within a synctest bubble; end stops it.
func queue(t *testing.T, p *people, log *slog.Logger) (d *Queue, end func()) {
	t.Helper()
	p.start = time.Now()
	d, err := NewQueue(Config{Store: p, Notifier: p, Clock: clock.Real{}, Log: log, PerMinute: 3})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	return d, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestAFewAMinuteAndTheRestSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &people{}
		d, end := queue(t, p, quiet())
		one, other := godwit.NewTenantID(noon), godwit.NewTenantID(noon)
		for range 50 {
			d.Post(dead(one))
		}
		d.Post(godwit.Notice{TenantID: one, Kind: godwit.NoticeEndpointMoved}) // no alert is sent for this
		d.Post(dead(other))
		synctest.Wait()
		if n := p.heard(); n != 4 {
			t.Fatalf("%d alerts at once", n)
		}
		if a := p.told[0]; len(a.Notices) != 1 || a.Notices[0].Endpoint != "WEB-X2M8KD-Z" || a.Notices[0].Description != "Orders" || a.Tenant.Name != "acme" {
			t.Errorf("told %+v", a)
		}
		time.Sleep(59 * time.Second)
		if n := p.heard(); n != 4 {
			t.Fatalf("%d alerts within a minute", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := p.heard(); n != 5 {
			t.Fatalf("%d alerts after a minute", n)
		}
		if sum := p.told[4]; sum.Tenant.ID != one || len(sum.Notices) != maxTold || sum.More[godwit.NoticeDeadLetter] != 27 || sum.count() != 47 {
			t.Errorf("summed up: %d and %v", len(sum.Notices), sum.More)
		}
		// The summary counts as one alert of the next minute.
		for range 3 {
			d.Post(dead(one))
		}
		synctest.Wait()
		if n := p.heard(); n != 7 {
			t.Errorf("%d alerts in the second minute", n)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := p.heard(); n != 8 || len(d.accounts) != 0 {
			t.Errorf("%d alerts, %d accounts are remembered", n, len(d.accounts))
		}
		end()
	})
}

func TestAlertsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &people{fail: func(try int) error {
			if try <= 3 {
				return errors.New("connection refused")
			}
			return nil
		}}
		d, end := queue(t, p, quiet())
		d.Post(dead(godwit.NewTenantID(noon)))
		time.Sleep(time.Hour)
		synctest.Wait()
		want := 5*time.Second + 30*time.Second + 2*time.Minute
		if p.heard() != 1 || p.at[0] != want {
			t.Errorf("told after %v, want %s", p.at, want)
		}
		end()
	})
}

func TestAlertsAreGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		tries int
	}{
		"in the end":            {errors.New("connection refused"), len(backOff) + 1},
		"at once, when refused": {&Permanent{errors.New("550 unknown")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				p := &people{fail: func(int) error { return c.err }}
				d, end := queue(t, p, slog.New(slog.NewTextHandler(&log, nil)))
				d.Post(dead(godwit.NewTenantID(noon)))
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				if p.tries != c.tries || !strings.Contains(log.String(), "given up") {
					t.Errorf("%d tries: %s", p.tries, log.String())
				}
				end()
			})
		})
	}
}

// The delivering goroutine never waits, however slow the mail server is. The number of waiting notices is limited, and
// they are sent in the end.
func TestPostNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &people{gate: make(chan struct{})}
		d, end := queue(t, p, quiet())
		tenants := make([]godwit.TenantID, 200)
		for i := range tenants {
			tenants[i] = godwit.NewTenantID(noon)
		}
		for range 10 {
			for _, tenant := range tenants {
				d.Post(dead(tenant))
			}
			synctest.Wait()
		}
		if n := len(d.outbox); n != maxOutbox {
			t.Errorf("%d wait in the outbox", n)
		}
		close(p.gate)
		time.Sleep(time.Hour)
		synctest.Wait()
		all := 0
		for _, a := range p.told {
			all += a.count()
		}
		if all != 2000 {
			t.Errorf("told of %d notices", all)
		}
		end()
	})
}

func TestWhatWaitsIsToldAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &people{}
		d, end := queue(t, p, quiet())
		tenant := godwit.NewTenantID(noon)
		for range 10 {
			d.Post(dead(tenant))
		}
		synctest.Wait()
		end()
		if p.heard() != 4 || len(p.told[3].Notices) != 7 {
			t.Errorf("told %d times", p.heard())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := &people{gate: make(chan struct{})} // a mail server that does not answer does not delay the stop
		d, end := queue(t, p, quiet())
		d.Post(dead(godwit.NewTenantID(noon)))
		synctest.Wait()
		began := time.Now()
		end()
		if took := time.Since(began); took > stopTimeout {
			t.Errorf("the stop took %s", took)
		}
	})
}

// When the queue stops, alerts that wait for a retry, and those that the stop interrupts, are tried once more.
func TestFailedAlertsAreTriedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &people{fail: func(try int) error {
			if try <= 2 {
				return errors.New("busy")
			}
			return nil
		}}
		d, end := queue(t, p, quiet())
		d.Post(dead(godwit.NewTenantID(noon)))
		d.Post(dead(godwit.NewTenantID(noon)))
		synctest.Wait()
		end()
		if p.heard() != 2 || p.tries != 4 {
			t.Errorf("told %d alerts in %d tries", p.heard(), p.tries)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := &people{gate: make(chan struct{})}
		d, end := queue(t, p, quiet())
		d.Post(dead(godwit.NewTenantID(noon)))
		synctest.Wait()
		time.AfterFunc(time.Second, func() { close(p.gate) })
		end()
		if p.heard() != 1 {
			t.Errorf("told %d alerts", p.heard())
		}
	})
}

func TestLog(t *testing.T) {
	var log bytes.Buffer
	a := Alert{Tenant: account1(), Notices: []Notice{about(godwit.NoticeEndpointDisabled, "10 in a row")}, More: map[godwit.NoticeKind]int{godwit.NoticeDeadLetter: 3}}
	if err := (Log{slog.New(slog.NewTextHandler(&log, nil))}).Notify(t.Context(), a); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"kind=endpoint-disabled", `detail="10 in a row"`, "public_id=WEB-X2M8KD-Z", "more=3"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
}
