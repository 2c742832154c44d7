package sender

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"os"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// overLink makes the request over a link and writes the result to x. If the receiver speaks HTTP/2, nothing was sent, and the
// connection is returned for net/http.
func (h *hop) overLink(b *attemptContext, d *scratch, req *http.Request, x *godwit.Exchange) *offer {
	whole, err := d.encode(req, h.destination, h.request.Body, h.request.FreshConnection)
	if err != nil {
		x.Failure = unsendable(err)
		return nil
	}
	for b.Context.Err() == nil {
		l, offer, err := h.connect(b)
		switch {
		case offer != nil:
			return offer
		case err != nil && b.Err() != nil:
			x.Failure = contextFailure(b, false)
			return nil
		case err != nil:
			x.Failure = failedToConnect(err)
			return nil
		}
		x.RemoteAddr, x.Proto, x.Reused = l.remote, "HTTP/1.1", h.reused
		if !h.exchange(b, d, l, req, whole, x) {
			return nil
		}
	}
	x.Failure = contextFailure(b, false)
	return nil
}

// connect returns an idle link or a new one.
func (h *hop) connect(b *attemptContext) (*link, *offer, error) {
	if l := h.id.links.take(h.destination.origin); l != nil {
		h.reused = true
		return l, nil, nil
	}
	h.reused = false
	l, http2, err := h.id.dialLink(b, h.destination)
	if http2 != nil {
		h.id.links.speakHTTP2(h.destination.origin, true)
		return nil, newOffer(http2), nil
	}
	return l, nil, err
}

// exchange sends the request over a link and reads the response. It returns true if the request must use another link: this one
// was idle and had died, and no byte of the request was written.
func (h *hop) exchange(b *attemptContext, d *scratch, l *link, req *http.Request, whole bool, x *godwit.Exchange) (again bool) {
	l.begin(b.at, h.sender.maxResponseHeader)
	begin := steady()
	stopWatching := func() bool { return true }
	if b.Context.Done() != nil {
		stopWatching = context.AfterFunc(b.Context, l.cut)
	}
	var resp *http.Response
	err := errStale
	w := l.send(d.out, h.request.Body, whole)
	if w.left { // otherwise bytes that arrived answer no request
		d.in.Reset(l)
		firstByte(b.Context, d)
		resp, err = l.response(d.in, req)
		if l.first > 0 { // read here: another attempt may have the link once it is given back
			h.firstByte = l.first - begin
		}
	}
	if err != nil {
		stopWatching()
		l.cut()
		w.wait()
		if h.reused && !w.left && outOfTime(b, l, false) == nil {
			return true
		}
		x.Failure, x.Status = failedOverLink(b, l, err)
		return false
	}
	keep := h.readResponse(b, l, resp, x) && d.in.Buffered() == 0 && !l.ended
	keep = w.over(keep) && keep && !l.hungUp
	if stopWatching() && keep && !h.request.FreshConnection {
		h.id.links.give(l)
	} else {
		l.close()
	}
	return false
}

// readResponse reads the response to its end. It reports whether the connection can serve another request.
func (h *hop) readResponse(b *attemptContext, l *link, resp *http.Response, x *godwit.Exchange) (keep bool) {
	x.Status, x.Header, x.Proto = resp.StatusCode, resp.Header, resp.Proto
	if resp.StatusCode == http.StatusSwitchingProtocols {
		x.Failure = switchedUnasked()
		return false
	}
	var err error
	x.Body, x.BodyCapped, err = h.sender.readBody(resp.Body)
	if err != nil {
		if x.Failure = outOfTime(b, l, true); x.Failure == nil {
			x.Failure = failedInBody(b, err, true)
		}
		return false
	}
	// A connection that answered 421 leads to the wrong host for the next request as well (EDS-STA-421).
	return !x.BodyCapped && !resp.Close && resp.StatusCode > 199 && resp.StatusCode != http.StatusMisdirectedRequest
}

// failedOverLink returns why there is no response header, and the status if the status line had arrived.
func failedOverLink(b *attemptContext, l *link, err error) (*godwit.Failure, int) {
	if f := outOfTime(b, l, l.written > 0); f != nil {
		return f, 0
	}
	return failedHTTP1(err, l.seen())
}

// outOfTime returns nil unless the attempt's deadline has passed or its context has ended. The link's own timer decides: it and
// the machine's clock may differ slightly.
func outOfTime(b *attemptContext, l *link, sent bool) *godwit.Failure {
	switch {
	case b.Context.Err() != nil:
		return contextFailure(b, sent)
	case l.late:
		return timedOut(sent)
	}
	return nil
}

// firstByte calls the trace of a caller that traces its requests.
func firstByte(ctx context.Context, d *scratch) {
	t := httptrace.ContextClientTrace(ctx)
	if t == nil || t.GotFirstResponseByte == nil {
		return
	}
	if _, err := d.in.Peek(1); err == nil {
		t.GotFirstResponseByte()
	}
}

// writing is the rest of a request that is being written.
type writing struct {
	link *link
	left bool          // a byte of the request was written
	done chan struct{} // nil if there is no rest
}

// send writes a request. The rest of a large one is written by another goroutine, so that a response that comes early is read
// (EDS T-39). If writing fails after some bytes, the reading side sees the early response or the end of the connection.
func (l *link) send(head, payload []byte, whole bool) writing {
	first := head[:min(len(head), writeAtOnce)]
	err := l.write(first)
	if err != nil {
		l.late = errors.Is(err, os.ErrDeadlineExceeded)
	}
	w := writing{link: l, left: l.written > 0}
	if whole || err != nil {
		return w
	}
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		if l.write(head[len(first):]) == nil {
			_ = l.write(payload)
		}
	}()
	return w
}

// wait waits until writing has ended.
func (w writing) wait() {
	if w.done != nil {
		<-w.done
	}
}

// lateWrite is how long the rest of a request may take after its response was read, for the connection to be kept.
const lateWrite = 50 * time.Millisecond

// over ends the writing after the response was read, and reports whether it was complete. It waits for that only to keep the
// connection.
func (w writing) over(keep bool) bool {
	if w.done == nil {
		return true
	}
	if keep {
		t := time.NewTimer(lateWrite)
		defer t.Stop()
		select {
		case <-w.done:
			return true
		case <-t.C:
		}
	}
	w.link.cut()
	<-w.done
	return false
}
