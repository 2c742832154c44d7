package commit

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A batch is the content of one transaction.
type batch struct {
	requests []*requestOp
	records  []*Record
}

func (b *batch) empty() bool { return len(b.requests)+len(b.records) == 0 }

// write commits one batch. If it fails, callers of requests get the error, and records are kept for the next round.
func (g *Group) write(b batch) bool {
	b = leaveBehind(b)
	if b.empty() {
		return true
	}
	stored := g.assemble(b)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	started, steady := g.cfg.Clock.Now(), g.cfg.Pace.Steady()
	committed, err := g.cfg.Store.Commit(ctx, stored)
	took := g.cfg.Clock.Now().Sub(started)
	g.cfg.Measured(len(b.requests), len(b.records), took, err)
	g.written(took, err)
	if err == nil && committed.Behind {
		return g.write(b.answerBehind())
	}
	if err == nil {
		if stored.ConfigVersion != 0 {
			g.cfg.ConfigConfirmed(stored.ConfigVersion, steady)
		}
		g.answer(b, committed)
		for i := range stored.Notices {
			g.cfg.OnNotice(stored.Notices[i])
		}
		return true
	}
	g.cfg.Log.Error("commit failed", "requests", len(b.requests), "records", len(b.records), "error", err)
	lasting := !store.Passing(err)
	if lasting && len(b.requests)+len(b.records) > 1 {
		return g.isolate(b)
	}
	for _, op := range b.requests {
		op.done <- Answer{Err: err}
	}
	if lasting && len(b.records) == 1 {
		return g.writeStripped(b.records[0], err)
	}
	g.requeue(dropReturns(b.records, err), err)
	return false
}

// isolate writes a batch piece by piece after a permanent failure, so that one bad row does not block the others.
func (g *Group) isolate(b batch) bool {
	ok := true
	for i := range b.requests {
		ok = g.write(batch{requests: b.requests[i : i+1]}) && ok
	}
	for i := range b.records {
		ok = g.write(batch{records: b.records[i : i+1]}) && ok
	}
	return ok
}

// writeStripped retries a record that the store permanently refused, without the parts that may be the cause. It drops a
// record with nothing left to remove.
func (g *Group) writeStripped(r *Record, cause error) bool {
	if r.strip() {
		g.cfg.Log.Error("details of a result dropped", "delivery", r.Result.Delivery.ID.String())
		return g.write(batch{records: []*Record{r}})
	}
	g.cfg.Log.Error("result dropped", "delivery", r.Result.Delivery.ID.String())
	r.report(cause)
	r.News.end(false)
	r.Claim.Dropped(r, cause)
	return true
}

// dropReturns drops the records that return a claim and returns the others. The transaction may have taken effect although it failed. The
// node may then have claimed the delivery again, and unlike the result of an attempt a repeated return cannot be told from the return of that
// claim. The lane finds out what the store holds instead.
func dropReturns(records []*Record, err error) []*Record {
	var kept []*Record
	for _, r := range records {
		if r.Result.Attempt != nil || r.Result.Delivery.Status != godwit.DeliveryPending {
			kept = append(kept, r)
			continue
		}
		r.report(err)
		r.News.end(false)
		r.Claim.Dropped(r, err)
	}
	return kept
}

// requeue puts records back at the front of their lines. It tells callers that wait for one that it is written later.
func (g *Group) requeue(records []*Record, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	byTenant := map[godwit.TenantID][]*Record{}
	for _, r := range records {
		r.report(err)
		tenant := r.Result.Delivery.TenantID
		byTenant[tenant] = append(byTenant[tenant], r)
	}
	for tenant, list := range byTenant {
		g.records.pushFront(tenant, list...)
	}
}

// abandon leaves queued operations unwritten and tells the waiting callers.
func (g *Group) abandon() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, q := range []*queue[*requestOp]{g.foreground, g.background} {
		for q.length > 0 {
			for _, op := range q.take(q.length, q.length) {
				op.done <- Answer{Err: ErrStopping}
			}
		}
	}
	if n := g.records.length; n > 0 {
		g.cfg.Log.Error("stopped with results that could not be written: their deliveries will be sent again", "results", n)
	}
	for g.records.length > 0 {
		for _, r := range g.records.take(g.records.length, g.records.length) {
			r.report(ErrStopping)
		}
	}
	g.busy = false
	g.idle.Broadcast()
}

func (g *Group) assemble(b batch) *store.Batch {
	out := &store.Batch{Now: g.cfg.Clock.Now(), Accepts: make([]store.Accept, 0, len(b.requests))}
	for _, op := range b.requests {
		out.Accepts = append(out.Accepts, op.Accepts...)
		out.Fanouts = append(out.Fanouts, op.Fanouts...)
		out.Notices = append(out.Notices, op.Notices...)
		if op.Change != nil {
			out.Changes = append(out.Changes, *op.Change)
		}
		out.ConfigVersion = max(out.ConfigVersion, op.ConfigVersion)
	}
	if len(b.records) == 0 {
		return out
	}
	out.Results = make([]store.Result, 0, len(b.records))
	tried := make(map[godwit.EndpointID]Claim, len(b.records))
	for _, r := range b.records {
		if r.News != nil {
			out.Accepts = append(out.Accepts, r.News.Accept)
		}
		out.Results = append(out.Results, r.Result)
		milestone(out, len(out.Results)-1, r.Event, out.Now)
		out.Notices = append(out.Notices, r.Notices...)
		if r.Change != nil {
			out.Changes = append(out.Changes, *r.Change)
		}
		if r.Result.Attempt != nil {
			tried[r.Result.Delivery.EndpointID] = r.Claim
		}
	}
	for _, claim := range tried {
		out.Health = append(out.Health, claim.Health())
	}
	return out
}

// answer tells each caller and each claim the result of its part of a batch.
func (g *Group) answer(b batch, committed *store.Committed) {
	first, moved := 0, indices(committed.Moved)
	for _, op := range b.requests {
		next := first + len(op.Accepts)
		a := Answer{Existing: committed.Existing[first:next:next]}
		for i := first; i < next && len(moved) > 0; i++ {
			a.Moved = a.Moved || moved[i]
		}
		op.done <- a
		first = next
	}
	refused := indices(committed.Fenced)
	if len(refused) > 0 && g.cfg.Fenced != nil {
		g.cfg.Fenced(len(refused))
	}
	for i, r := range b.records {
		// The news of a refused result are stored too, perhaps by an earlier commit whose answer was lost.
		r.News.end(true)
		if refused[i] {
			g.cfg.Log.Warn("result refused: the delivery is no longer claimed here", "delivery", r.Result.Delivery.ID.String())
			r.report(store.ErrConflict)
			r.Claim.Refused(r)
			continue
		}
		r.report(nil)
		r.Claim.Stored(r)
	}
}

func indices(list []int) map[int]bool {
	set := make(map[int]bool, len(list))
	for _, i := range list {
		set[i] = true
	}
	return set
}
