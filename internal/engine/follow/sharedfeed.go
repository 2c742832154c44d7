package follow

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Topics of the signals between feeds.
const (
	watchTopic   = "watch"   // the tenants that a node's watchers want to see
	attemptTopic = "attempt" // an attempt, for the nodes that want it
)

const (
	// interestInterval is how often a node repeats what its watchers want; interestLife is how long another node believes it.
	interestInterval = time.Second
	interestLife     = 5 * time.Second
	allTenants       = "*"
)

// A SharedFeed is this node's feed, joined with those of the other nodes. A node with watchers says so, and gets the attempts
// of other nodes as signals. While no client of any node watches, an attempt costs one atomic read.
type SharedFeed struct {
	*Feed
	clock clock.Clock
	tell  func(topic, body string) // sends a signal to the other nodes; must not block
	urlOf func(godwit.EndpointID) string

	wanted atomic.Bool // another node has watchers
	mu     sync.Mutex
	others map[string]interest // by node
}

// An interest is what the watchers of another node want.
type interest struct {
	tenants []string
	until   time.Duration // on the steady clock
}

// NewSharedFeed makes a feed without watchers. urlOf returns the URL of an endpoint, or "".
func NewSharedFeed(c clock.Clock, tell func(topic, body string), urlOf func(godwit.EndpointID) string) *SharedFeed {
	return &SharedFeed{Feed: NewFeed(), clock: c, tell: tell, urlOf: urlOf, others: map[string]interest{}}
}

// Watch streams the attempts of a tenant on all nodes from now on; see Feed.Watch.
func (s *SharedFeed) Watch(tenant godwit.TenantID) (items <-chan FeedItem, stop func()) {
	items, stop = s.Feed.Watch(tenant)
	s.announce()
	return items, stop
}

// Run repeats what the watchers want until ctx ends: nodes come and go, and a signal may be lost.
func (s *SharedFeed) Run(ctx context.Context) {
	for clock.Wait(ctx, s.clock, interestInterval) {
		s.announce()
	}
}

func (s *SharedFeed) announce() {
	if s.Empty() {
		return
	}
	var wanted []string
	for _, tenant := range s.tenants() {
		if tenant.IsZero() {
			wanted = []string{allTenants}
			break
		}
		wanted = append(wanted, tenant.String())
	}
	body := strings.Join(wanted, " ")
	if len(body) > store.MaxSignal/2 {
		body = allTenants
	}
	s.tell(watchTopic, body)
}

// Wanted reports whether any node watches attempts, this one included.
func (s *SharedFeed) Wanted() bool { return s.wanted.Load() || !s.Empty() }

// Publish passes an attempt to the watchers of its tenant on all nodes.
func (s *SharedFeed) Publish(item FeedItem) {
	s.Feed.Publish(item)
	if s.wanted.Load() && s.wantedElsewhere(item.Attempt.TenantID.String()) {
		if body := encodeItem(item); body != "" {
			s.tell(attemptTopic, body)
		}
	}
}

// wantedElsewhere also forgets nodes that have said nothing for long.
func (s *SharedFeed) wantedElsewhere(tenant string) (wanted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Steady()
	for node, i := range s.others {
		if i.until < now {
			delete(s.others, node)
			continue
		}
		wanted = wanted || slices.Contains(i.tenants, tenant) || slices.Contains(i.tenants, allTenants)
	}
	s.wanted.Store(len(s.others) > 0)
	return wanted
}

// hiddenQuery stands for the query of a URL in a signal.
const hiddenQuery = "?***"

// hideQuery removes the query of a URL, which may hold a credential: every user of the database can listen to signals.
func hideQuery(url string) string {
	if before, _, found := strings.Cut(url, "?"); found {
		return before + hiddenQuery
	}
	return url
}

// hideQueries removes the queries of all URLs, and header fields, from an item.
func hideQueries(item *FeedItem) {
	a := &item.Attempt
	a.URL, a.Verdict.MoveTo = hideQuery(a.URL), hideQuery(a.Verdict.MoveTo)
	if w := a.Trace.Wire; w != nil { // header fields are not for every role that can listen
		a.Trace.Wire = &godwit.Wire{Timing: w.Timing, Cut: w.Cut}
	}
	a.Trace.Hops = slices.Clone(a.Trace.Hops) // others use the item too
	for i := range a.Trace.Hops {
		h := &a.Trace.Hops[i]
		h.From, h.To = hideQuery(h.From), hideQuery(h.To)
	}
}

// restoreURL puts the query of the endpoint's URL back, unless the endpoint has another URL by now.
func (s *SharedFeed) restoreURL(a *godwit.Attempt) {
	if url := s.urlOf(a.EndpointID); hideQuery(url) == a.URL {
		a.URL = url
	}
}

// encodeItem leaves out what does not fit into a signal: first the receiver's text, then all details.
func encodeItem(item FeedItem) string {
	hideQueries(&item)
	for _, shorten := range []func(*godwit.Trace){
		func(*godwit.Trace) {},
		func(t *godwit.Trace) { t.Body, t.Problem = "", nil },
		func(t *godwit.Trace) { *t = godwit.Trace{} },
	} {
		shorten(&item.Attempt.Trace)
		if body, err := json.Marshal(item); err == nil && len(body) <= store.MaxSignal-256 {
			return string(body)
		}
	}
	return ""
}

// Told takes a signal of another node. It ignores other topics, and what it cannot read: that is from another release.
func (s *SharedFeed) Told(node, topic, body string) {
	switch topic {
	case watchTopic:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.others[node] = interest{strings.Fields(body), s.clock.Steady() + interestLife}
		s.wanted.Store(true)
	case attemptTopic:
		var item FeedItem
		if json.Unmarshal([]byte(body), &item) == nil {
			s.restoreURL(&item.Attempt)
			s.Feed.Publish(item)
		}
	}
}
