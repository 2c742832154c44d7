package signal

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// pipe is a store of signals in memory.
type pipe struct{ sent [][]string }

func (p *pipe) Signal(_ context.Context, messages []string) error {
	p.sent = append(p.sent, messages)
	return nil
}
func (*pipe) Listen(ctx context.Context, _ func(string), _ func()) { <-ctx.Done() }

type subscriber struct {
	endpoints []godwit.EndpointID
	shards    []int
	leases    int
	told      []string
}

func (s *subscriber) Work(ids []godwit.EndpointID) { s.endpoints = append(s.endpoints, ids...) }
func (s *subscriber) WorkIn(shards []int)          { s.shards = append(s.shards, shards...) }
func (s *subscriber) Leases()                      { s.leases++ }
func (s *subscriber) Told(node, topic, body string) {
	s.told = append(s.told, node+": "+topic+": "+body)
}
func (s *subscriber) Lost() {}

func hubs() (*pipe, *Hub, *Hub) {
	p, log, pace := &pipe{}, slog.New(slog.DiscardHandler), clock.NewManual(time.Unix(1000, 0))
	return p, NewHub(p, godwit.Node{Name: "a", Instance: "1"}, pace, log), NewHub(p, godwit.Node{Name: "b", Instance: "1"}, pace, log)
}

// What is told between two sendings is sent once, and only other nodes get it.
func TestSignalsAreCoalesced(t *testing.T) {
	p, a, b := hubs()
	one, two := godwit.NewEndpointID(time.Unix(1, 0)), godwit.NewEndpointID(time.Unix(2, 0))
	for range 3 {
		a.Work(one)
		a.Work(two)
		a.Leases()
	}
	a.Flush(t.Context())
	a.Flush(t.Context())
	if len(p.sent) != 1 || len(p.sent[0]) != 2 {
		t.Fatalf("sent %q", p.sent)
	}
	own, other := &subscriber{}, &subscriber{}
	for _, m := range p.sent[0] {
		a.receive(m, own)
		b.receive(m, other)
	}
	if own.leases != 0 || own.endpoints != nil {
		t.Errorf("the sender got %+v", own)
	}
	if other.leases != 1 || len(other.endpoints) != 2 || !slices.Contains(other.endpoints, one) || !slices.Contains(other.endpoints, two) {
		t.Errorf("the other node got %+v", other)
	}
}

// What is told during the pause after a sending shares the next one.
func TestPauseBetweenSendings(t *testing.T) {
	p := &countingPipe{sent: make(chan int, 10)}
	pace := clock.NewManual(time.Unix(1000, 0))
	h := NewHub(p, godwit.Node{Name: "a", Instance: "1"}, pace, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { h.Run(ctx, &subscriber{}) })
	h.Tell("topic", "1")
	if n := <-p.sent; n != 1 {
		t.Errorf("the first sending had %d messages, want 1", n)
	}
	pace.Await(pace.Now().Add(sendPause), time.Hour)
	h.Tell("topic", "2")
	h.Tell("topic", "3")
	if len(p.sent) != 0 {
		t.Errorf("%d messages were sent during the pause", <-p.sent)
	}
	pace.Advance(sendPause)
	if n := <-p.sent; n != 2 {
		t.Errorf("the second sending had %d messages, want 2", n)
	}
	stop()
	running.Wait()
}

// countingPipe tells how many messages each sending has.
type countingPipe struct {
	pipe
	sent chan int
}

func (p *countingPipe) Signal(_ context.Context, messages []string) error {
	p.sent <- len(messages)
	return nil
}

// Messages of other topics arrive whole and in order; too many are dropped.
func TestOtherTopics(t *testing.T) {
	p, a, b := hubs()
	for i := range maxMessages + 10 {
		a.Tell("topic", fmt.Sprintf(`{"n": %d}`, i))
	}
	a.Flush(t.Context())
	own, other := &subscriber{}, &subscriber{}
	for _, m := range p.sent[0] {
		a.receive(m, own)
		b.receive(m, other)
	}
	if own.told != nil || len(other.told) != maxMessages || other.told[7] != `a/1: topic: {"n": 7}` {
		t.Errorf("the sender got %d, the other node %d: %q", len(own.told), len(other.told), other.told[:min(8, len(other.told))])
	}
}

// Many endpoints are told of by their shards, and no message is too long.
func TestManyEndpoints(t *testing.T) {
	for _, n := range []int{maxEndpoints, maxEndpoints + 1, 5000} {
		p, a, b := hubs()
		want := map[int]bool{}
		for range n {
			id := godwit.NewEndpointID(time.Unix(1, 0))
			a.Work(id)
			want[id.Shard()] = true
		}
		a.Flush(t.Context())
		got := &subscriber{}
		for _, m := range p.sent[0] {
			if len(m) > store.MaxSignal {
				t.Errorf("a message has %d bytes", len(m))
			}
			b.receive(m, got)
		}
		found := map[int]bool{}
		for _, id := range got.endpoints {
			found[id.Shard()] = true
		}
		for _, shard := range got.shards {
			found[shard] = true
		}
		if len(found) != len(want) {
			t.Errorf("%d endpoints: %d shards were told of, want %d", n, len(found), len(want))
		}
	}
}

// A message that this release does not understand is ignored.
func TestForeignMessages(t *testing.T) {
	_, a, _ := hubs()
	got := &subscriber{}
	for _, m := range []string{"", "b/1", "b/1 later x", "b/1 work", "b/1 work !", "b/1 work shards=x", "b/1 work AAAA"} {
		a.receive(m, got)
	}
	if got.endpoints != nil || got.shards != nil || got.leases != 0 {
		t.Errorf("got %+v", got)
	}
}
