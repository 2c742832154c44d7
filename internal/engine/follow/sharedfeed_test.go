package follow

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const endpointURL = "https://receiver.example/?token=secret"

// sharedFeeds makes the feeds of two nodes, a and b, that hear each other at once.
func sharedFeeds(t *testing.T) (a, b *SharedFeed, hands *clock.Manual, sent *[]string) {
	hands, sent = clock.NewManual(start), new([]string)
	urlOf := func(godwit.EndpointID) string { return endpointURL }
	note := func(topic, body string) {
		if strings.Contains(body, "token") {
			t.Errorf("a signal holds a query, which may be a credential: %s", body)
		}
		if *sent = append(*sent, topic); len(body) > store.MaxSignal-200 {
			t.Errorf("a signal of %d bytes", len(body))
		}
	}
	a = NewSharedFeed(hands, func(topic, body string) { note(topic, body); b.Told("a", topic, body) }, urlOf)
	b = NewSharedFeed(hands, func(topic, body string) { note(topic, body); a.Told("b", topic, body) }, urlOf)
	return a, b, hands, sent
}

func attemptOf(tenant godwit.TenantID) FeedItem {
	return FeedItem{
		EventType: "order.paid", Status: godwit.DeliveryExhausted,
		Attempt: godwit.Attempt{
			ID: godwit.NewAttemptID(start), DeliveryID: godwit.NewDeliveryID(start), TenantID: tenant, EventID: godwit.NewEventID(start),
			EndpointID: godwit.NewEndpointID(start), N: 3, Trigger: godwit.TriggerRetry, StartedAt: start, Duration: time.Second,
			URL: endpointURL, Status: 500,
			Verdict: godwit.Verdict{Outcome: godwit.Transient, Reason: "server-error", Class: godwit.ClassApplication},
			Trace:   godwit.Trace{Proto: "HTTP/1.1", Body: "no \"luck\"\n", SignedWith: []string{"sec_1"}},
		},
	}
}

// A watcher sees the attempts of its tenant whichever node made them, with every member, and nothing is sent while it does not
// want them.
func TestFeedsOfOtherNodes(t *testing.T) {
	a, b, hands, sent := sharedFeeds(t)
	tenant, other := godwit.NewTenantID(start), godwit.NewTenantID(start)
	b.Publish(attemptOf(tenant))
	if b.Wanted() || len(*sent) != 0 {
		t.Errorf("nobody watches, but %v was sent", *sent)
	}
	items, stop := a.Watch(tenant)
	want := attemptOf(tenant)
	b.Publish(want)
	b.Publish(attemptOf(other))
	a.Publish(attemptOf(tenant))
	if got := <-items; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	<-items
	if strings.Join(*sent, " ") != "watch attempt" || len(items) != 0 {
		t.Errorf("sent %v, %d more items", *sent, len(items))
	}

	stop()
	hands.Advance(interestLife + 1)
	b.Publish(attemptOf(tenant))
	if b.Wanted() || strings.Join(*sent, " ") != "watch attempt" {
		t.Errorf("after the watcher has gone, %v was sent", *sent)
	}
	all, stop := a.Watch(godwit.TenantID{})
	defer stop()
	b.Publish(attemptOf(other))
	if got := <-all; got.Attempt.TenantID != other {
		t.Errorf("a watcher of all tenants got %+v", got)
	}
}

// A long answer of a receiver is left out rather than the attempt.
func TestLongAttemptsAreShortened(t *testing.T) {
	a, b, _, _ := sharedFeeds(t)
	items, stop := a.Watch(godwit.TenantID{})
	defer stop()
	for _, long := range []func(*godwit.Trace){
		func(t *godwit.Trace) { t.Body = strings.Repeat("\x01", godwit.MaxBodyExcerpt) },
		func(t *godwit.Trace) { t.Detail = strings.Repeat("x", store.MaxSignal) },
	} {
		item := attemptOf(godwit.NewTenantID(start))
		long(&item.Attempt.Trace)
		b.Publish(item)
		if got := <-items; got.Attempt.ID != item.Attempt.ID || got.Attempt.Trace.Body != "" {
			t.Errorf("got %+v", got)
		}
	}
}
