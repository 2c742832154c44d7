package receiver

import (
	"context"
	"errors"
	"maps"
	"net/http"
)

// errTimeUp is the cause with which a handler's context ends.
var errTimeUp = errors.New("the handler's time is over")

// An ending is the end of a handler's run, with the answer to the sender.
type ending struct {
	answer Answer
	kind   ReportKind
	code   ProblemCode
}

// run calls the handler, stores its result, and makes the answer. It continues if the sender disconnects.
//
// When the handler's time is over, the sender is told to retry. The key stays reserved while the handler still runs: freeing it
// would let a retry run at the same time. When the handler ends, its result is kept or the key freed; if it never ends, the
// lease does.
func (x *exchange) run(d *Delivery, h *Hold) Answer {
	r := x.r
	base := context.WithoutCancel(x.req.Context())
	ctx, cancel := context.WithTimeoutCause(base, r.o.Timeout, errTimeUp)
	done := make(chan ending, 1)
	r.running.Go(func() {
		defer cancel()
		done <- x.handle(ctx, d, h)
	})
	var end ending
	select {
	case end = <-done:
	case <-ctx.Done():
		select {
		case end = <-done: // in time after all
		default:
			r.log.Warn("webhook receiver: handler is late", "scheme", r.profile.Name, "event", d.EventID)
			end = ending{x.later("Not finished in time, try again later", RetryAfter{}), KindTimeout, CodeRetryAfter}
		}
	}
	x.report.Kind, x.report.Code = end.kind, end.code
	return end.answer
}

// handle recovers by itself: it runs in its own goroutine, where a panic of a store, an inbox or a profile would end the
// process.
func (x *exchange) handle(ctx context.Context, d *Delivery, h *Hold) (end ending) {
	defer func() {
		if p := recover(); p != nil {
			x.r.failed(panicked(p), "receive")
			tell(func() { x.release(h) })
			end = ending{x.r.problem(http.StatusInternalServerError, CodeInternal, "Internal error"), KindFailed, CodeInternal}
		}
	}()
	if x.r.txStore != nil {
		return x.handleTx(ctx, d, h)
	}
	result, err := x.call(ctx, d)
	if err != nil {
		return x.fail(h, err)
	}
	return x.settle(d, h, result)
}

// call calls the handler, or puts the delivery into the inbox. It returns a valid result or an error.
func (x *exchange) call(ctx context.Context, d *Delivery) (result Result, err error) {
	if x.r.o.Inbox != nil {
		return Accepted{}, x.enqueue(d)
	}
	return callHandler(ctx, x.r.o.Handler, d, x.r.o.MultiStatusAgreement != "")
}

func callHandler(ctx context.Context, handler Handler, d *Delivery, allowMultiStatus bool) (result Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, panicked(p)
		}
	}()
	result, err = handler(ctx, d)
	if err != nil {
		return nil, err
	}
	if result == nil {
		return Accepted{}, nil
	}
	if fault := result.fault(allowMultiStatus); fault != "" {
		return nil, errors.New(fault)
	}
	return result, nil
}

// fail is for handlers that returned an error or panicked. The sender is told no details.
func (x *exchange) fail(h *Hold, err error) ending {
	x.r.failed(err, "handler")
	x.release(h)
	return ending{x.r.problem(http.StatusInternalServerError, CodeInternal, "Internal error"), KindFailed, CodeInternal}
}

// settle keeps a final result, and frees the key after any other (EDS T-3).
func (x *exchange) settle(d *Delivery, h *Hold, result Result) ending {
	switch v := result.(type) {
	case RetryAfter:
		x.release(h)
		return ending{x.later(v.Reason, v), KindRetryAfter, CodeRetryAfter}
	case Reject:
		answer := x.rejection(v)
		if x.r.o.Dedup.AcceptedOnly {
			x.release(h)
		} else {
			x.keep(h, answer)
		}
		return ending{answer, KindReject, CodeRejected}
	default:
		answer := x.acceptance(d, result.(Accepted))
		x.keep(h, answer)
		return ending{answer, KindAccepted, ""}
	}
}

// handleTx runs the handler in the transaction that completes its key.
func (x *exchange) handleTx(ctx context.Context, d *Delivery, h *Hold) ending {
	// The transaction gets more time than the handler, for its commit.
	txCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.r.o.Timeout+x.r.o.StoreTimeout)
	defer cancel()
	tx, err := x.r.txStore.Begin(txCtx, *h)
	if err != nil {
		return x.undone(h, err, "begin transaction")
	}
	defer func() {
		if err := tx.Rollback(txCtx); err != nil {
			x.r.failed(err, "roll back")
		}
	}()
	result, err := x.call(tx.Context(ctx), d)
	if err != nil {
		x.rollback(txCtx, tx)
		return x.fail(h, err)
	}
	accepted, ok := result.(Accepted)
	if !ok { // what the handler wrote before it failed is rolled back
		x.rollback(txCtx, tx)
		return x.settle(d, h, result)
	}
	answer := x.acceptance(d, accepted)
	done, err := tx.Complete(txCtx, x.r.completion(answer))
	if err == nil && !done {
		err = ErrLeaseLost
	}
	if err != nil {
		return x.undone(h, err, "commit")
	}
	return ending{answer, KindAccepted, ""}
}

func (x *exchange) rollback(ctx context.Context, tx Tx) {
	if err := tx.Rollback(ctx); err != nil {
		x.r.failed(err, "roll back")
	}
}

// undone is for transactions that were not committed, or whose commit is uncertain. A key that was completed after all is not
// freed by this.
func (x *exchange) undone(h *Hold, err error, where string) ending {
	x.r.failed(err, where)
	x.release(h)
	return ending{x.later("Unavailable, try again later", RetryAfter{}), KindFailed, CodeUnavailable}
}

func (x *exchange) later(reason string, v RetryAfter) Answer {
	if v.After == 0 {
		v.After = x.r.o.RetryAfter
	}
	if reason == "" {
		reason = "Try again later"
	}
	status := http.StatusServiceUnavailable
	if v.TooMany {
		status = http.StatusTooManyRequests
	}
	return x.r.problem(status, CodeRetryAfter, reason, "Retry-After", seconds(v.After))
}

func (x *exchange) rejection(v Reject) Answer {
	if v.Status == 0 {
		v.Status = http.StatusUnprocessableEntity
	}
	if v.Reason == "" {
		v.Reason = "Rejected"
	}
	return x.r.problem(v.Status, CodeRejected, v.Reason)
}

// acceptance combines the handler's result with the scheme's default answer.
func (x *exchange) acceptance(d *Delivery, v Accepted) Answer {
	answer := x.r.profile.Success(d.Identity)
	if len(v.Header) == 0 && len(v.Body) == 0 && v.Status == 0 {
		return answer // the usual case
	}
	header := http.Header{}
	if len(v.Body) > 0 {
		answer.Body = v.Body
		if answer.Status == http.StatusNoContent {
			answer.Status = http.StatusOK
		}
	} else {
		maps.Copy(header, answer.Header)
	}
	if v.Status != 0 {
		answer.Status = v.Status
	}
	if answer.Status == http.StatusNoContent || answer.Status == http.StatusResetContent {
		answer.Body = nil
		delete(header, "Content-Type")
	}
	for name, values := range v.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	delete(header, "Retry-After") // only an answer that asks for a retry has it (EDS-RAF-1)
	answer.Header = header
	return answer
}
