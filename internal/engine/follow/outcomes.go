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

// pollInterval is how often the store is asked about deliveries that another node makes: their results are not committed here.
const pollInterval = 250 * time.Millisecond

// Awaited is how far the deliveries of an event have come.
type Awaited struct {
	Deliveries []godwit.Delivery // without cancelled ones: those have no outcome to wait for
	// Open counts those without an outcome within the time; Held those among them that will not be tried soon, because
	// their endpoint is paused, disabled or asked for time.
	Open, Held int
}

// Config is what Outcomes are made of.
type Config struct {
	Clock clock.Clock
	Log   *slog.Logger
	// Deliveries reads all deliveries of an event.
	Deliveries func(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) ([]godwit.Delivery, error)
	Lanes      Lanes
}

// Lanes is what this node knows of deliveries that are not finished.
type Lanes interface {
	Standing(endpoint godwit.EndpointID, delivery godwit.DeliveryID, now time.Time) dispatch.Standing
	// Changed reads an endpoint, which may have been registered on another node.
	Changed(ctx context.Context, id godwit.EndpointID) error
}

// Outcomes tells callers what becomes of an event's deliveries. The commit that stores a result tells it here; it costs an
// atomic read when no caller waits.
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

// Stored tells the new state of a delivery.
func (o *Outcomes) Stored(d *godwit.Delivery) { o.tell(d.EventID, d) }

// Refused says that a result of the event was refused here: what becomes of its delivery is another node's to tell.
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

// A mailbox gathers what is told to one caller.
type mailbox struct {
	mu      sync.Mutex
	stored  []godwit.Delivery
	refused bool
	signal  chan struct{} // has one token when something was put in
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

// take empties the mailbox. A refusal is told again at each call.
func (m *mailbox) take() (stored []godwit.Delivery, refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stored, m.stored = m.stored, nil
	return stored, m.refused
}

// Await waits until every delivery of an event has an outcome, but no longer than the limit. A delivery has an outcome when
// it is finished, or was tried more often than since tells. The error is that of the context, or of the store.
//
// Outcomes come from the commits of this node. The store is read at the beginning, at the limit, and every pollInterval while
// some delivery is made by another node.
func (o *Outcomes) Await(ctx context.Context, tenant godwit.TenantID, id godwit.EventID, since map[godwit.DeliveryID]int, limit time.Duration) (*Awaited, error) {
	box := o.open(id) // before reading, so that no result falls between
	defer o.close(id, box)
	late := make(chan struct{})
	p := progress{o: o, tenant: tenant, event: id, since: since, until: o.cfg.Clock.Now().Add(limit), known: map[godwit.DeliveryID]known{}}
	defer o.cfg.Clock.AfterFunc(limit, func() { close(late) }).Stop()
	if err := p.read(ctx); err != nil {
		return nil, err
	}
	for {
		// The lanes are looked at first, then the mailbox: a lane lets go of a delivery only after its result was told.
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
			// Deliveries that were cancelled or made by another node were not told here.
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

// A cause ends a wait.
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

// progress is what one caller of Await knows of an event's deliveries.
type progress struct {
	o       *Outcomes
	tenant  godwit.TenantID
	event   godwit.EventID
	since   map[godwit.DeliveryID]int
	until   time.Time
	order   []godwit.DeliveryID
	known   map[godwit.DeliveryID]known
	refused bool // a result of ours was refused: results are no longer told here
}

// known is a delivery as it was told by a commit, or read.
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

// meet reads the endpoint of a delivery that another node has made: it may have been registered there.
func (p *progress) meet(ctx context.Context, d *godwit.Delivery) {
	_, before := p.known[d.ID]
	if before || d.Status != godwit.DeliveryPending || p.o.cfg.Lanes.Standing(d.EndpointID, d.ID, p.until).Known {
		return
	}
	if err := p.o.cfg.Lanes.Changed(ctx, d.EndpointID); err != nil {
		p.o.cfg.Log.Error("load endpoint that is waited for", "endpoint", d.EndpointID.String(), "error", err)
	}
}

// learn takes over what is newer: a read may be older than a result that was told meanwhile.
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

// count sums up, and reports whether the store has to be polled for some of what is open.
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

// A stage is how far a delivery has come for a caller that waits.
type stage int

const (
	decided   stage = iota // it has an outcome
	underWay               // a commit of this node will tell its outcome
	elsewhere              // only the store knows its outcome
	held                   // it is not tried before the limit
)

func (p *progress) stageOf(d *known, now time.Time) stage {
	if d.Status != godwit.DeliveryPending {
		return decided
	}
	s := p.o.cfg.Lanes.Standing(d.EndpointID, d.ID, now)
	tried := d.Attempts > p.since[d.ID]
	// A delivery that was read while its lane holds it may stand between two attempts of which the second follows at once; the
	// second is the one that counts.
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
