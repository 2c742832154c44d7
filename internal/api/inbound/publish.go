package inbound

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Receipt is the response to an accepted delivery.
type Receipt struct {
	ID             string           `json:"id"`
	IdempotencyKey string           `json:"idempotency_key"`
	Mode           godwit.RelayMode `json:"mode"`   // mode in which it was answered
	Status         string           `json:"status"` // stored, or accepted by every endpoint
}

func (x *exchange) publish(event *intake.Event, release func()) error {
	tenant, err := x.cfg.Store.Tenant(x.r.Context(), x.src.TenantID)
	if err != nil {
		return fmt.Errorf("find tenant: %w", err)
	}
	mode, _, err := x.cfg.Sources.ModeOf(x.r.Context(), tenant, x.src)
	if err != nil {
		return err
	}
	if mode == godwit.PassThrough {
		if err := x.waits.Acquire(x.src.TenantID, "deliveries that wait for endpoints"); err != nil {
			return err
		}
		defer x.waits.Release(x.src.TenantID, 1)
	}
	id, repeated, err := x.submit(tenant, event)
	if err != nil {
		return err
	}
	x.body = nil
	release() // the engine holds the event now
	receipt := Receipt{ID: id.String(), IdempotencyKey: event.Key, Mode: mode, Status: verdictStored}
	status := http.StatusAccepted
	if mode == godwit.PassThrough {
		if err := x.await(id, repeated); err != nil {
			return err
		}
		receipt.Status, status = verdictAccepted, http.StatusOK
	}
	body, err := json.Marshal(receipt)
	if err != nil {
		return fmt.Errorf("encode receipt: %w", err)
	}
	h := x.w.Header()
	if repeated {
		h.Set(idempotency.ReplayedHeader, "true")
	}
	h.Set("Content-Type", "application/json")
	x.succeeded(receipt.Status)
	x.w.WriteHeader(status)
	_, _ = x.w.Write(append(body, '\n')) // the upstream may have disconnected; the event is stored
	return nil
}

// submit stores the event, or finds the event that was stored under the key before.
func (x *exchange) submit(tenant *godwit.Tenant, event *intake.Event) (id godwit.EventID, repeated bool, err error) {
	sub := intake.Submission{
		Producer: intake.Upstream(tenant, x.src.ID),
		Respond: func([]godwit.Event, []int) *godwit.StoredResponse {
			return &godwit.StoredResponse{Status: http.StatusAccepted}
		},
	}
	sub.Repeat = x.cfg.Intake.ByUpstreamKey(sub.Producer, event, x.gate.Fingerprints())
	admission, err := x.cfg.Intake.Admit(x.r.Context(), sub.Producer, event, sub.Repeat)
	if err != nil {
		return id, false, err
	}
	sub.Events = []intake.Admission{admission}
	receipts, err := x.cfg.Intake.Submit(x.unhurried(), sub)
	if err == nil {
		err = receipts[0].Err
	}
	switch {
	case err == engine.ErrInProgress:
		// Some upstreams give up on 409.
		return id, false, problem.Unavailable.With("the first delivery with this key is being stored")
	case err != nil:
		return id, false, err
	case receipts[0].Replayed != nil:
		return receipts[0].ReplayedEvent, true, nil
	}
	return receipts[0].Events[0].ID, false, nil
}

// writing bounds the time to write a response.
const writing = 30 * time.Second

// await waits for the endpoints. For a repeat, it first has the open deliveries tried at once.
func (x *exchange) await(id godwit.EventID, repeated bool) error {
	// The body has been read. The server's deadline for a whole request must not end the wait. Test recorders do not support
	// deadlines.
	control := http.NewResponseController(x.w)
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(clock.SocketDeadline(x.cfg.Deadline + writing))
	x.cfg.Recorder.Waiting(1)
	defer x.cfg.Recorder.Waiting(-1)
	var since map[godwit.DeliveryID]int
	if repeated {
		var err error
		since, err = x.cfg.Engine.RepeatedUpstream(x.unhurried(), x.src.TenantID, id, x.src.ID.String())
		switch {
		case errors.Is(err, engine.ErrInProgress):
			return problem.Unavailable.With("the event is being given to its endpoints")
		case errors.Is(err, store.ErrNotFound):
			return problem.DownstreamFailed.With("the event of this key is not kept any more, and what became of it is not known")
		case err != nil:
			return fmt.Errorf("resume delivery: %w", err)
		}
	}
	outcome, err := x.cfg.Engine.Await(x.r.Context(), x.src.TenantID, id, since, x.cfg.Deadline)
	if x.r.Context().Err() != nil {
		return problem.Unavailable.With("the wait for the endpoints was cut short") // the upstream disconnected, or the server is stopping
	}
	if err != nil {
		return fmt.Errorf("wait for the endpoints: %w", err)
	}
	return verdict(outcome)
}

// verdict combines the endpoints' outcomes; it is nil if all endpoints accepted. If an endpoint may still accept, the
// upstream should deliver again; if all open endpoints have refused, it should not. Status codes of endpoints are never
// copied (EDS T-12).
func verdict(a *engine.Awaited) error {
	if len(a.Deliveries) == 0 {
		return problem.NoDownstream.With("no endpoint is for this event")
	}
	kind := (*problem.Kind)(nil)
	var left []problem.Downstream
	for i := range a.Deliveries {
		d := &a.Deliveries[i]
		if d.Status == godwit.DeliveryAccepted {
			continue
		}
		left = append(left, problem.Downstream{Delivery: d.ID.String(), Outcome: string(d.Status), Status: d.LastStatus, Reason: string(d.Reason)})
		switch {
		case d.Status == godwit.DeliveryTerminal:
			if kind == nil {
				kind = problem.DownstreamRejected
			}
		case unknown(d):
			kind = problem.DownstreamTimeout
		case kind != problem.DownstreamTimeout:
			kind = problem.DownstreamFailed
		}
	}
	if kind == nil {
		return nil
	}
	if a.Open > a.Held {
		kind = problem.DownstreamTimeout
	}
	p := kind.With("%d of %d endpoints have not accepted the event", len(left), len(a.Deliveries))
	p.Downstream = left
	return p
}

// unknown reports an attempt whose request the endpoint may or may not have processed (EDS-STA-408, EDS-STA-504, EDS-NET-2).
func unknown(d *godwit.Delivery) bool {
	if d.LastStatus == http.StatusRequestTimeout || d.LastStatus == http.StatusGatewayTimeout {
		return true
	}
	switch godwit.FailureKind(d.Reason) {
	case godwit.FailureTimeout, godwit.FailureReset, godwit.FailureTruncated, godwit.FailureStreamReset:
		return true
	}
	return false
}
