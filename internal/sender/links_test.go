package sender

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// kept answers every request and tells when the sender has closed the connection.
func kept(closed chan<- int) func(*peer) {
	return func(p *peer) {
		for p.next() != nil {
			p.say(ok200)
		}
		closed <- p.n
	}
}

func TestIdleTimeout(t *testing.T) {
	closed := make(chan int, 4)
	overHTTP1(t, kept(closed), func(t *testing.T, st *stub, url string) {
		s := newSender(t, func(c *Config) { c.IdleTimeout = 100 * time.Millisecond })
		wantStatus(t, send(s, post(url)), 200)
		for <-closed != 1 { // what another stub's second connection left behind
		}
		x := send(s, post(url))
		wantStatus(t, x, 200)
		if x.Reused {
			t.Error("reused")
		}
	})
}

// A link whose time is over is not taken, also before the sweep has closed it.
func TestExpiredLinkIsNotTaken(t *testing.T) {
	st := newStub(t, nil, serve(ok200))
	s := newSender(t, func(c *Config) { c.IdleTimeout = time.Nanosecond })
	for i := range 3 {
		x := send(s, post(st.url()))
		wantStatus(t, x, 200)
		if x.Reused || int(st.conns.Load()) != i+1 {
			t.Errorf("attempt %d: reused %v, %d connections", i, x.Reused, st.conns.Load())
		}
	}
}

func TestMaxIdle(t *testing.T) {
	closed := make(chan int, 4)
	first, second := newStub(t, nil, kept(closed)), newStub(t, nil, serve(ok200))
	s := newSender(t, func(c *Config) { c.MaxIdle = 1 })
	wantStatus(t, send(s, post(first.url())), 200)
	wantStatus(t, send(s, post(second.url())), 200)
	<-closed // the older one gave way
	if x := send(s, post(second.url())); !x.Reused {
		t.Error("the newer one was not kept")
	}
}

func TestMaxIdlePerHost(t *testing.T) {
	const n = 4
	arrived, answer, closed := make(chan struct{}), make(chan struct{}), make(chan struct{}, n)
	st := newStub(t, nil, func(p *peer) {
		for p.next() != nil {
			arrived <- struct{}{}
			<-answer
			p.say(ok200)
		}
		closed <- struct{}{}
	})
	s := newSender(t, func(c *Config) { c.MaxIdlePerHost = 1 })
	done := make(chan godwit.Exchange, n)
	for range n {
		go func() { done <- send(s, post(st.url())) }()
	}
	for range n {
		<-arrived
	}
	close(answer)
	for range n {
		wantStatus(t, <-done, 200)
	}
	for range n - 1 {
		<-closed
	}
	if s.shared.links.n != 1 {
		t.Errorf("%d idle", s.shared.links.n)
	}
}

// Links come and go in every order; the books agree.
func TestLinksBooks(t *testing.T) {
	st := newStub(t, nil, func(p *peer) { p.hold() })
	s := newSender(t)
	ls := &links{max: 6, maxHost: 3, timeout: time.Hour}
	b := newAttemptContext(t.Context(), 0)
	defer b.end()
	for i := range 40 {
		at, _ := s.destination(fmt.Sprintf("http://127.0.0.%d:%s/", 1+i%5, st.Addr().String()[len("127.0.0.1:"):]))
		link, _, err := s.shared.dialLink(b, &destination{origin: at.origin, addr: st.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		ls.give(link)
		if i%4 == 0 {
			if l := ls.take(at.origin); l != nil {
				l.close()
			}
		}
		ls.check(t)
	}
	ls.clear(true)
	ls.check(t)
	if ls.n != 0 || ls.oldest != nil {
		t.Error("not empty")
	}
}

func (ls *links) check(t *testing.T) {
	t.Helper()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	count, stacked := 0, 0
	var last *link
	for l := ls.oldest; l != nil; l = l.newer {
		if l.older != last || !l.idle || last != nil && l.since.Before(last.since) {
			t.Fatal("list is broken")
		}
		last = l
		count++
	}
	for _, st := range ls.at {
		stacked += len(st.idle)
		if len(st.idle) > ls.maxHost {
			t.Fatal("too many for a host")
		}
	}
	if last != ls.newest || count != ls.n || stacked != ls.n || ls.n > ls.max {
		t.Fatalf("%d in the list, %d in stacks, %d counted", count, stacked, ls.n)
	}
}

func TestHTTP2OriginsAreBounded(t *testing.T) {
	var ls links
	for i := range maxHTTP2Origins + 10 {
		ls.speakHTTP2(fmt.Sprint("https://", i), true)
	}
	if len(ls.http2) > maxHTTP2Origins || !ls.speaksHTTP2(fmt.Sprint("https://", maxHTTP2Origins+9)) {
		t.Errorf("%d remembered", len(ls.http2))
	}
}

func TestPlaceCache(t *testing.T) {
	s := newSender(t)
	first, problem := s.destination("http://receiver.test/a?b#")
	if problem == nil {
		t.Errorf("%+v accepted", first)
	}
	again, _ := s.destination("http://Receiver.test/a?b")
	if again.origin != "http://receiver.test:80" || again.addr != "receiver.test:80" || again.uri != "/a?b" || again.secure {
		t.Errorf("%+v", again)
	}
	if p, _ := s.destination("https://[2606:4700::1111]"); p.addr != "[2606:4700::1111]:443" || p.uri != "/" || !p.secure {
		t.Errorf("%+v", p)
	}
	for i := range 3 * maxDestinations {
		if _, problem := s.destination(fmt.Sprintf("http://receiver.test/%d", i)); problem != nil {
			t.Fatal(problem)
		}
		if p, _ := s.destination("http://Receiver.test/a?b"); p != again {
			t.Fatal("what is asked for all the time was forgotten")
		}
	}
	if n := len(s.destinations.now) + len(s.destinations.past); n > 2*maxDestinations {
		t.Errorf("%d destinations", n)
	}
	if _, problem := s.destination("http://" + strings.Repeat("x", 3000)); problem == nil || problem.Problem != ProblemLength {
		t.Errorf("%+v", problem)
	}
}
