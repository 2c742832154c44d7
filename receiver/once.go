package receiver

import (
	"context"
	"maps"
	"net/http"
	"slices"
)

// maxKeptBody is the longest body that is kept for repeats. Of a longer answer only status and header are kept (IKH K-9).
const maxKeptBody = 64 << 10

// neverKept are fields that belong to one answer only.
var neverKept = []string{"Date", "Connection", "Set-Cookie", "Retry-After", "Content-Length", "Transfer-Encoding", "Traceparent"}

// storeContext limits one operation of the store. It does not end when the sender disconnects.
func (x *exchange) storeContext() (context.Context, context.CancelFunc) {
	if x.r.inMemory { // it does not wait
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.WithoutCancel(x.req.Context()), x.r.o.StoreTimeout)
}

// once reserves the key. Then the handler runs, or the repeat is answered.
func (x *exchange) once(d *Delivery) (Answer, error) {
	r := x.r
	if r.o.Dedup.Off {
		return x.run(d, nil), nil
	}
	h := Hold{Scope: x.r.scopeOf(d), Token: newToken()}
	if !r.o.Dedup.NoFingerprint {
		h.Fingerprint = r.o.Dedup.Fingerprint(d)
	}
	ctx, cancel := x.storeContext()
	defer cancel()
	now := r.o.Clock()
	found, err := r.store.Reserve(ctx, Reserve{Hold: h, Now: now, LeaseUntil: now.Add(r.lease)})
	if err != nil {
		return Answer{}, x.unavailable(err, "reserve key")
	}
	if found.State == Reserved {
		return x.run(d, &h), nil
	}
	return x.repeat(d, &h, &found)
}

// repeat answers a known key. It does not wait for a key in progress (IKH-SCN-4).
func (x *exchange) repeat(d *Delivery, h *Hold, found *Reservation) (Answer, error) {
	r := x.r
	kind := DuplicateCompleted
	switch {
	case found.Fingerprint != h.Fingerprint && !found.Fingerprint.IsZero() && !h.Fingerprint.IsZero():
		kind = DuplicateOtherPayload
	case found.State == InProgress:
		kind = DuplicateInProgress
	}
	if hook := r.o.Hooks.OnDuplicate; hook != nil {
		tell(func() { hook(Duplicate{r.profile.Name, d.Principal, d.EventID, kind}) })
	}
	switch kind {
	case DuplicateOtherPayload: // also while in progress: sending the same request again would not help (IKH K-5)
		return Answer{}, x.refuse(http.StatusUnprocessableEntity, CodeKeyReused, "The key was used with another payload")
	case DuplicateInProgress:
		status := http.StatusServiceUnavailable // webhook senders take 409 for final (CCW-IDM-5)
		if r.o.API {
			status = http.StatusConflict
		}
		return Answer{}, x.refuse(status, CodeInProgress, "A request with this key is in progress", "Retry-After", seconds(r.o.RetryAfter))
	}
	header := maps.Clone(found.Outcome.Header)
	if header == nil {
		header = http.Header{}
	}
	header["Idempotency-Replayed"] = []string{"true"}
	x.report.Kind = KindReplayed
	return Answer{found.Outcome.Status, header, found.Outcome.Body}, nil
}

// keep stores an answer before it is sent. If that fails, the effect has happened all the same, and the sender is told to
// retry: until the lease ends a repeat is told to wait; afterwards the handler may run again.
func (x *exchange) keep(h *Hold, a Answer) {
	if h == nil {
		return
	}
	ctx, cancel := x.storeContext()
	defer cancel()
	kept, err := x.r.store.Complete(ctx, *h, x.r.completion(a))
	if err == nil && !kept {
		err = ErrLeaseLost
	}
	if err != nil {
		x.r.failed(err, "keep result")
	}
}

func (x *exchange) release(h *Hold) {
	if h == nil {
		return
	}
	ctx, cancel := x.storeContext()
	defer cancel()
	if err := x.r.store.Release(ctx, *h); err != nil {
		x.r.failed(err, "release key") // the key is free when the lease ends
	}
}

func (r *Receiver) completion(a Answer) Completion {
	now := r.o.Clock()
	return Completion{outcomeOf(a), now, now.Add(r.window)}
}

func outcomeOf(a Answer) Outcome {
	header := a.Header
	for _, name := range neverKept {
		if _, ok := header[name]; ok {
			header = maps.Clone(header)
			maps.DeleteFunc(header, func(name string, _ []string) bool { return slices.Contains(neverKept, name) })
			break
		}
	}
	o := Outcome{Status: a.Status, Header: header}
	if len(a.Body) <= maxKeptBody {
		o.Body = a.Body
	}
	return o
}
