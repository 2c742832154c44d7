package follow

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// pollInterval is how often Await reads the store for deliveries of another node: this node does not commit their results.
const pollInterval = 250 * time.Millisecond

// Awaited is the progress of an event's deliveries.
type Awaited struct {
	Deliveries []godwit.Delivery // without cancelled ones, which have no outcome
	// Open counts the deliveries without an outcome at the limit. Held counts those of them that are not tried soon, because
	// their endpoint is paused, disabled or asked for time.
	Open, Held int
}

// Config configures Outcomes.
type Config struct {
	Clock clock.Clock
	Log   *slog.Logger
	// Deliveries reads all deliveries of an event.
	Deliveries func(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) ([]godwit.Delivery, error)
	Lanes      Lanes
}

// Lanes is this node's knowledge of unfinished deliveries.
type Lanes interface {
	LiveState(endpoint godwit.EndpointID, delivery godwit.DeliveryID, now time.Time) dispatch.LiveState
	// Changed reads an endpoint, which may have been created on another node.
	Changed(ctx context.Context, id godwit.EndpointID) error
}

// Outcomes tells callers the outcomes of an event's deliveries. The commit of a result calls Stored; without waiting callers
// this costs one atomic read.
type Outcomes struct {
	cfg   Config
	n     atomic.Int32 // callers that wait
	mu    sync.Mutex
	boxes map[godwit.EventID][]*mailbox
}

// NewOutcomes makes an Outcomes without callers.
func NewOutcomes(cfg Config) *Outcomes {
	return &Outcomes{cfg: cfg, boxes: map[godwit.EventID][]*mailbox{}}
}

// Stored passes on the new state of a delivery.
func (o *Outcomes) Stored(d *godwit.Delivery) { o.tell(d.EventID, d) }

// Refused says that the store refused a result of the event: another node has the delivery, so callers must read the store.
func (o *Outcomes) Refused(id godwit.EventID) { o.tell(id, nil) }

func (o *Outcomes) tell(id godwit.EventID, d *godwit.Delivery) {
	if o.n.Load() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, box := range o.boxes[id] {
		box.put(d)
	}
}

func (o *Outcomes) open(id godwit.EventID) *mailbox {
	box := &mailbox{signal: make(chan struct{}, 1)}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.boxes[id] = append(o.boxes[id], box)
	o.n.Add(1)
	return box
}

func (o *Outcomes) close(id godwit.EventID, box *mailbox) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n.Add(-1)
	var left []*mailbox
	for _, other := range o.boxes[id] {
		if other != box {
			left = append(left, other)
		}
	}
	if len(left) == 0 {
		delete(o.boxes, id)
	} else {
		o.boxes[id] = left
	}
}

// A mailbox collects the results for one caller.
type mailbox struct {
	mu      sync.Mutex
	stored  []godwit.Delivery
	refused bool
	signal  chan struct{} // has one token when the mailbox is not empty
}

// put adds a delivery, or a refusal when it is nil.
func (m *mailbox) put(d *godwit.Delivery) {
	m.mu.Lock()
	if d == nil {
		m.refused = true
	} else {
		m.stored = append(m.stored, *d)
	}
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// take empties the mailbox. It reports a refusal again at each call.
func (m *mailbox) take() (stored []godwit.Delivery, refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stored, m.stored = m.stored, nil
	return stored, m.refused
}

// Await waits until every delivery of an event has an outcome, at most until the limit. A delivery has an outcome when it is
// finished, or has more attempts than since says. The error is the context's or the store's.
//
// Outcomes come from the commits of this node. Await reads the store at the beginning, at the limit, and every pollInterval
// while another node has some of the deliveries.
func (o *Outcomes) Await(ctx context.Context, tenant godwit.TenantID, id godwit.EventID, since map[godwit.DeliveryID]int, limit time.Duration) (*Awaited, error) {
	box := o.open(id) // before the first read, so that no result is missed in between
	defer o.close(id, box)
	late := make(chan struct{})
	p := progress{o: o, tenant: tenant, event: id, since: since, until: o.cfg.Clock.Now().Add(limit), known: map[godwit.DeliveryID]known{}}
	defer o.cfg.Clock.AfterFunc(limit, func() { close(late) }).Stop()
	if err := p.read(ctx); err != nil {
		return nil, err
	}
	for {
		// Look at the lanes first, then at the mailbox: a lane releases a delivery only after its result was passed on.
		awaited, poll := p.count()
		if stored, refused := box.take(); len(stored) > 0 || refused && !p.refused {
			p.refused = refused
			p.learn(true, stored...)
			continue
		}
		if awaited.Open == awaited.Held {
			return awaited, nil
		}
		switch cause, err := o.wait(ctx, box, late, poll); {
		case err != nil:
			return nil, err
		case cause == limitReached:
			// Results of cancelled deliveries and of other nodes do not reach the mailbox.
			if p.read(ctx) == nil {
				awaited, _ = p.count()
			}
			return awaited, nil
		case cause == pollDue:
			if err := p.read(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// A cause is why a wait ended.
type cause int

const (
	resultTold cause = iota
	limitReached
	pollDue
)

func (o *Outcomes) wait(ctx context.Context, box *mailbox, late <-chan struct{}, poll bool) (cause, error) {
	var due chan struct{}
	if poll {
		due = make(chan struct{})
		defer o.cfg.Clock.AfterFunc(pollInterval, func() { close(due) }).Stop()
	}
	select {
	case <-box.signal:
		return resultTold, nil
	case <-late:
		return limitReached, nil
	case <-due:
		return pollDue, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// progress is the state of an event's deliveries as one caller of Await knows it.
type progress struct {
	o       *Outcomes
	tenant  godwit.TenantID
	event   godwit.EventID
	since   map[godwit.DeliveryID]int
	until   time.Time
	order   []godwit.DeliveryID
	known   map[godwit.DeliveryID]known
	refused bool // a result of this node was refused: later results do not arrive here
}

// known is a delivery, as read from the store or passed on by a commit.
type known struct {
	godwit.Delivery
	told bool
}

func (p *progress) read(ctx context.Context) error {
	list, err := p.o.cfg.Deliveries(ctx, p.tenant, p.event)
	if err != nil {
		return fmt.Errorf("read deliveries: %w", err)
	}
	for i := range list {
		p.meet(ctx, &list[i])
	}
	p.learn(false, list...)
	return nil
}

// meet reads the endpoint of a delivery that another node made: it may have been created there.
func (p *progress) meet(ctx context.Context, d *godwit.Delivery) {
	_, before := p.known[d.ID]
	if before || d.Status != godwit.DeliveryPending || p.o.cfg.Lanes.LiveState(d.EndpointID, d.ID, p.until).Known {
		return
	}
	if err := p.o.cfg.Lanes.Changed(ctx, d.EndpointID); err != nil {
		p.o.cfg.Log.Error("load endpoint that is waited for", "endpoint", d.EndpointID.String(), "error", err)
	}
}

// learn keeps the newer state: a read may be older than a result that arrived meanwhile.
func (p *progress) learn(told bool, list ...godwit.Delivery) {
	for _, d := range list {
		before, ok := p.known[d.ID]
		if !ok {
			p.order = append(p.order, d.ID)
		}
		if !ok || d.Attempts > before.Attempts || d.Attempts == before.Attempts && !d.UpdatedAt.Before(before.UpdatedAt) {
			p.known[d.ID] = known{d, told || before.told && before.Attempts == d.Attempts}
		}
	}
}

// count sums up the deliveries, and reports whether the store must be polled for open ones.
func (p *progress) count() (a *Awaited, poll bool) {
	a = &Awaited{}
	now := p.o.cfg.Clock.Now()
	for _, id := range p.order {
		d := p.known[id]
		if d.Status == godwit.DeliveryCancelled {
			continue
		}
		a.Deliveries = append(a.Deliveries, d.Delivery)
		switch p.stageOf(&d, now) {
		case decided:
			continue
		case elsewhere:
			poll = true
		case held:
			a.Held++
		}
		a.Open++
	}
	return a, poll
}

// A stage is the progress of a delivery for a waiting caller.
type stage int

const (
	decided   stage = iota // it has an outcome
	underWay               // a commit of this node will pass on its outcome
	elsewhere              // the outcome is only in the store
	held                   // it is not tried before the limit
)

func (p *progress) stageOf(d *known, now time.Time) stage {
	if d.Status != godwit.DeliveryPending {
		return decided
	}
	s := p.o.cfg.Lanes.LiveState(d.EndpointID, d.ID, now)
	tried := d.Attempts > p.since[d.ID]
	// A delivery read while its lane holds it may be between two attempts, the second of which follows at once. The second
	// attempt decides.
	if tried && (d.told || !s.Owned || !s.Held) {
		return decided
	}
	switch {
	case !s.Known:
		return held
	case !s.Owned || tried || p.refused:
		return elsewhere
	case s.NotBefore.After(p.until):
		return held
	}
	return underWay
}
