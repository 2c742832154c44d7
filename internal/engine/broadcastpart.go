package engine

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/engine/fanout"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A broadcastPart is the events of a broadcast for its next tenants.
type broadcastPart struct {
	accept   store.Accept
	admitted []admission
}

// step stores the next part of a broadcast; it reports whether that was the last one.
func (b *broadcaster) step(ctx context.Context, w *broadcast) (complete bool, err error) {
	if w.stale {
		if complete, err = b.read(ctx, w); err != nil || complete {
			return complete, err
		}
	}
	now, mark := b.accept.watermark.Enter()
	defer b.accept.watermark.Leave(mark)
	version := b.cfg.Changes.Version()
	for {
		part, err := b.part(ctx, w, now)
		if err != nil {
			return false, err
		}
		answer := b.commits.DoInBackground(commit.Request{
			Tenant: godwit.HomeOf(w.EnvironmentID), Accepts: []store.Accept{part.accept}, ConfigVersion: version,
		})
		switch {
		case answer.Err != nil:
			part.abandon(true)
			return false, answer.Err
		case answer.Behind: // another node has changed the configuration; as in Submit, the second commit names no version
			part.abandon(false)
			if err := b.cfg.Changes.CatchUp(ctx); err != nil {
				return false, err
			}
			b.cfg.Recorder.Rematched(len(part.admitted))
			version = 0
			continue
		case answer.Moved: // by another node, or by a commit whose answer was lost
			part.abandon(false)
			return b.read(ctx, w)
		}
		b.stored(w, part, now)
		return part.accept.Broadcast.Last, nil
	}
}

// part builds the next part: as many tenants as one transaction carries, and at least one.
func (b *broadcaster) part(ctx context.Context, w *broadcast, now time.Time) (*broadcastPart, error) {
	cursor := &store.BroadcastPart{ID: w.ID, From: w.Done, To: w.Done}
	p := &broadcastPart{accept: store.Accept{Broadcast: cursor}}
	for rows := 0; cursor.To < len(w.Work); cursor.To++ {
		tenant := w.Work[cursor.To]
		a := b.admit(w, tenant, now)
		weight := 2 + len(w.Event.Body)/commit.RowBytes // the event and the result
		large := a.total > fanout.PartRows
		if !large {
			weight += a.total
		}
		if rows > 0 && rows+weight > fanout.PartRows {
			break
		}
		rows += weight
		if a.total == 0 {
			_, err := b.cfg.Store.Tenant(ctx, tenant)
			if errors.Is(err, store.ErrNotFound) {
				cursor.Items = append(cursor.Items, godwit.BroadcastItem{TenantID: tenant, Reason: godwit.SkipDeleted})
				continue
			}
			if err != nil {
				p.abandon(false)
				return nil, err
			}
		}
		if large {
			a.accept.Events[0].Later = a.spread(nil)[0].Endpoints
		} else {
			a.reserve(now)
		}
		p.admitted = append(p.admitted, a)
		p.accept.Events = append(p.accept.Events, a.accept.Events[0])
		cursor.Items = append(cursor.Items, godwit.BroadcastItem{TenantID: tenant, EventID: a.receipt.Events[0].ID})
		cursor.Deliveries += a.total
	}
	cursor.Last = cursor.To == len(w.Work)
	return p, nil
}

// admit builds the event of a broadcast for a tenant and finds its receivers.
func (b *broadcaster) admit(w *broadcast, tenant godwit.TenantID, now time.Time) admission {
	e := w.Event
	s := &Submission{TenantID: tenant, Principal: w.Principal, Events: []Publication{{
		Type: e.Type, ContentType: e.ContentType, Body: e.Body, Attributes: e.Attributes, KeptHeaders: e.KeptHeaders,
	}}}
	return b.accept.admit(s, &Receipt{}, now)
}

// stored passes the deliveries of a stored part on.
func (b *broadcaster) stored(w *broadcast, p *broadcastPart, now time.Time) {
	cursor := p.accept.Broadcast
	for i := range p.admitted {
		a := &p.admitted[i]
		for k := range a.rooms {
			a.rooms[k].Committed(now)
		}
		if n := &p.accept.Events[i]; len(n.Later) > 0 {
			b.fanouts.Add(n.Fanout())
		}
	}
	b.cfg.Recorder.Submitted(len(p.admitted), cursor.Deliveries)
	w.Done = cursor.To
	w.Accepted += cursor.Accepted()
	w.Skipped += cursor.Skipped()
	if cursor.Last {
		b.cfg.Log.Info("broadcast complete", "broadcast", w.ID.String(), "accepted", w.Accepted, "skipped", w.Skipped, "took", now.Sub(w.CreatedAt))
	}
}

func (p *broadcastPart) abandon(unknown bool) {
	for i := range p.admitted {
		p.admitted[i].abandon(unknown)
	}
}

// read reads a broadcast and its cursor; it reports whether the broadcast is complete.
func (b *broadcaster) read(ctx context.Context, w *broadcast) (complete bool, err error) {
	work, err := b.cfg.Store.BroadcastWork(ctx, w.ID)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	w.BroadcastWork, w.stale = *work, false
	return false, nil
}
