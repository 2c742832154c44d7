package postgres

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// arrangeResults sorts results by their target table. A delivery may occur again after a result that kept its claim: then the
// last state counts, and every attempt. known, when not nil, holds what the store has of the deliveries; if nil, all are assumed to
// be claimed, and no attempt to be stored.
func (c *commit) arrangeResults(known *knownResults) {
	results := c.batch.Results
	if len(results) == 0 {
		return
	}
	c.attempted = store.NewTally(c.batch.Now)
	last := make(map[godwit.DeliveryID]int, len(results))
	partly := false // not every result is its delivery's last state
	for i := range results {
		r := &results[i]
		if before, ok := last[r.Delivery.ID]; ok {
			if b := &results[before]; !keeps(b) || b.Epoch != r.Epoch {
				c.fenced = append(c.fenced, i)
				continue
			}
			partly = true
		}
		if r.Epoch <= 0 || known != nil && !known.claimed(r) {
			c.fenced = append(c.fenced, i)
			continue
		}
		if known != nil && known.applied(r) {
			partly = true
			continue
		}
		last[r.Delivery.ID] = i
		if r.Attempt != nil {
			c.attempts = append(c.attempts, r.Attempt)
		}
		c.attempted.Of(r.Delivery.TenantID).Result(r)
	}
	c.finished = make([]*store.Result, 0, len(last))
	for i := range results {
		r := &results[i]
		if at, ok := last[r.Delivery.ID]; !ok || (partly || len(c.fenced) > 0) && at != i {
			continue
		}
		switch {
		case r.Delivery.Status == godwit.DeliveryPending:
			c.waiting = append(c.waiting, r)
		default:
			c.finished = append(c.finished, r)
			if r.Delivery.Status.Dead() {
				c.dead = append(c.dead, r)
			}
		}
	}
	for _, list := range [][]*store.Result{c.finished, c.waiting, c.dead} {
		slices.SortFunc(list, byDelivery) // the order of locks
	}
}

func byDelivery(a, b *store.Result) int {
	return cmp.Or(bytes.Compare(a.Delivery.TenantID[:], b.Delivery.TenantID[:]), bytes.Compare(a.Delivery.ID[:], b.Delivery.ID[:]))
}

// knownResults is what the store has of the deliveries of a batch.
type knownResults struct {
	claims   map[godwit.DeliveryID]int64 // epochs of the claims
	attempts map[[16]byte]bool           // those that are stored
}

// applied reports whether a commit whose answer was lost has stored the result.
func (k *knownResults) applied(r *store.Result) bool {
	return r.Attempt != nil && k.attempts[r.Attempt.ID]
}

// claimed reports whether the delivery has the claim that the result belongs to. If the result is stored and ended its claim, the claim
// that the delivery has now is a later one of the same node: to end that one too would have the delivery sent twice.
func (k *knownResults) claimed(r *store.Result) bool {
	return k.claims[r.Delivery.ID] == r.Epoch && (keeps(r) || !k.applied(r))
}

// keeps reports whether the delivery is still claimed after the result.
func keeps(r *store.Result) bool { return r.KeepClaim && r.Delivery.Status == godwit.DeliveryPending }

func (c *commit) addResults(p *pipeline) {
	addFinished(p, c.finished)
	addWaiting(p, c.waiting)
	addAttempts(p, c.attempts)
	addDead(p, c.dead, c.batch.Now)
}

var deliveryColumns = []string{
	"tenant_id uuid", "id uuid", "event_id uuid", "endpoint_id uuid", "created_at timestamptz", "updated_at timestamptz",
	"due_at timestamptz", "run_first_at timestamptz", "attempts int4", "last_status int4", "run_attempts int4",
	"run_refreshed bool", "status text", "reason text", "run_trigger text", "run_actor text",
}

var (
	removePending = prepared("remove", `WITH gone AS (
			DELETE FROM pending_deliveries AS p USING `+rows(1, "tenant_id uuid", "id uuid", "epoch int8")+` AS n
			WHERE p.tenant_id = n.tenant_id AND p.id = n.id AND p.claim_epoch = n.epoch RETURNING 1)
		SELECT expect(count(*), $4, '`+stateClaimLost+`') FROM gone`)
	insertDeliveries = prepared("deliveries", insert("deliveries", deliveryColumns...))
)

// addFinished moves deliveries from the pending to the finished ones. The claim in the row is the fence.
func addFinished(p *pipeline, list []*store.Result) {
	if len(list) == 0 {
		return
	}
	a := p.begin()
	column(a, typeID, list, func(r *store.Result) { a.id(r.Delivery.TenantID) })
	column(a, typeID, list, func(r *store.Result) { a.id(r.Delivery.ID) })
	column(a, typeInt8, list, func(r *store.Result) { a.int8(r.Epoch) })
	a.scalarInt8(int64(len(list)))
	p.add(removePending, nil)

	a = p.begin()
	writeDeliveries(a, list)
	p.add(insertDeliveries, nil)
}

func writeDeliveries(a *parameters, list []*store.Result) {
	column(a, typeID, list, func(r *store.Result) { a.id(r.Delivery.TenantID) })
	column(a, typeID, list, func(r *store.Result) { a.id(r.Delivery.ID) })
	column(a, typeID, list, func(r *store.Result) { a.id(r.Delivery.EventID) })
	column(a, typeID, list, func(r *store.Result) { a.id(r.Delivery.EndpointID) })
	column(a, typeTime, list, func(r *store.Result) { a.time(r.Delivery.CreatedAt) })
	column(a, typeTime, list, func(r *store.Result) { a.time(r.Delivery.UpdatedAt) })
	column(a, typeTime, list, func(r *store.Result) { a.time(r.Delivery.DueAt) })
	column(a, typeTime, list, func(r *store.Result) { a.time(r.Delivery.Run.FirstAt) })
	column(a, typeInt4, list, func(r *store.Result) { a.int4(r.Delivery.Attempts) })
	column(a, typeInt4, list, func(r *store.Result) { a.int4(r.Delivery.LastStatus) })
	column(a, typeInt4, list, func(r *store.Result) { a.int4(r.Delivery.Run.Attempts) })
	column(a, typeBool, list, func(r *store.Result) { a.bool(r.Delivery.Run.Refreshed) })
	column(a, typeText, list, func(r *store.Result) { a.text(string(r.Delivery.Status)) })
	column(a, typeText, list, func(r *store.Result) { a.text(string(r.Delivery.Reason)) })
	column(a, typeText, list, func(r *store.Result) { a.text(string(r.Delivery.Run.Trigger)) })
	column(a, typeText, list, func(r *store.Result) { a.text(r.Delivery.Run.Actor) })
}

var updatePending = prepared("wait", `WITH kept AS (
		UPDATE pending_deliveries AS p SET claim_epoch = n.next_epoch, updated_at = n.updated_at, due_at = n.due_at,
			run_first_at = n.run_first_at, attempts = n.attempts, last_status = n.last_status, run_attempts = n.run_attempts,
			run_refreshed = n.run_refreshed, reason = n.reason, run_trigger = n.run_trigger, run_actor = n.run_actor
		FROM `+rows(1, "tenant_id uuid", "id uuid", "epoch int8", "next_epoch int8", "updated_at timestamptz",
	"due_at timestamptz", "run_first_at timestamptz", "attempts int4", "last_status int4", "run_attempts int4",
	"run_refreshed bool", "reason text", "run_trigger text", "run_actor text")+` AS n
		WHERE p.tenant_id = n.tenant_id AND p.id = n.id AND p.claim_epoch = n.epoch RETURNING 1)
	SELECT expect(count(*), $15, '`+stateClaimLost+`') FROM kept`)

// addWaiting stores deliveries that are retried, or whose claim is returned.
func addWaiting(p *pipeline, list []*store.Result) {
	if len(list) == 0 {
		return
	}
	a := p.begin()
	column(a, typeID, list, func(r *store.Result) { a.id(r.Delivery.TenantID) })
	column(a, typeID, list, func(r *store.Result) { a.id(r.Delivery.ID) })
	column(a, typeInt8, list, func(r *store.Result) { a.int8(r.Epoch) })
	column(a, typeInt8, list, func(r *store.Result) {
		if r.KeepClaim {
			a.int8(r.Epoch)
		} else {
			a.int8(0)
		}
	})
	column(a, typeTime, list, func(r *store.Result) { a.time(r.Delivery.UpdatedAt) })
	column(a, typeTime, list, func(r *store.Result) { a.time(r.Delivery.DueAt) })
	column(a, typeTime, list, func(r *store.Result) { a.time(r.Delivery.Run.FirstAt) })
	column(a, typeInt4, list, func(r *store.Result) { a.int4(r.Delivery.Attempts) })
	column(a, typeInt4, list, func(r *store.Result) { a.int4(r.Delivery.LastStatus) })
	column(a, typeInt4, list, func(r *store.Result) { a.int4(r.Delivery.Run.Attempts) })
	column(a, typeBool, list, func(r *store.Result) { a.bool(r.Delivery.Run.Refreshed) })
	column(a, typeText, list, func(r *store.Result) { a.text(string(r.Delivery.Reason)) })
	column(a, typeText, list, func(r *store.Result) { a.text(string(r.Delivery.Run.Trigger)) })
	column(a, typeText, list, func(r *store.Result) { a.text(r.Delivery.Run.Actor) })
	a.scalarInt8(int64(len(list)))
	p.add(updatePending, nil)
}

var insertAttempts = prepared("attempts", insert("attempts",
	"delivery_id uuid", "id uuid", "started_at timestamptz", "next_at timestamptz", "duration int8", "n int4",
	"status int4", "trigger text", "outcome text", "reason text", "url text", "verdict json", "trace json"))

// addAttempts stores the members of attempts that do not follow from the delivery.
func addAttempts(p *pipeline, list []*godwit.Attempt) {
	if len(list) == 0 {
		return
	}
	a := p.begin()
	column(a, typeID, list, func(t *godwit.Attempt) { a.id(t.DeliveryID) })
	column(a, typeID, list, func(t *godwit.Attempt) { a.id(t.ID) })
	column(a, typeTime, list, func(t *godwit.Attempt) { a.time(t.StartedAt) })
	column(a, typeTime, list, func(t *godwit.Attempt) { a.time(t.NextAt) })
	column(a, typeInt8, list, func(t *godwit.Attempt) { a.int8(t.Duration.Microseconds()) })
	column(a, typeInt4, list, func(t *godwit.Attempt) { a.int4(t.N) })
	column(a, typeInt4, list, func(t *godwit.Attempt) { a.int4(t.Status) })
	column(a, typeText, list, func(t *godwit.Attempt) { a.text(string(t.Trigger)) })
	column(a, typeText, list, func(t *godwit.Attempt) { a.text(string(t.Verdict.Outcome)) })
	column(a, typeText, list, func(t *godwit.Attempt) { a.text(string(t.Verdict.Reason)) })
	column(a, typeText, list, func(t *godwit.Attempt) { a.text(t.URL) })
	column(a, typeJSON, list, func(t *godwit.Attempt) { a.optionalBytes(encodeVerdict(&t.Verdict)) })
	column(a, typeJSON, list, func(t *godwit.Attempt) { a.optionalBytes(encodeTrace(&t.Trace)) })
	p.add(insertAttempts, nil)
}

// verdictRest holds the members of a verdict other than outcome and reason.
type verdictRest struct {
	Class           godwit.FailureClass `json:"class,omitempty"`
	ReceiverUnknown bool                `json:"receiver_unknown,omitempty"`
	RetryAfter      time.Duration       `json:"retry_after_ns,omitempty"`
	SunsetAt        time.Time           `json:"sunset_at,omitzero"`
	DisableEndpoint bool                `json:"disable_endpoint,omitempty"`
	MoveTo          string              `json:"move_to,omitempty"`
	RefreshAndRetry bool                `json:"refresh_and_retry,omitempty"`
	Review          bool                `json:"review,omitempty"`
	Problem         *godwit.Problem     `json:"problem,omitempty"`
}

// encodeVerdict returns nil for an ordinary success.
func encodeVerdict(v *godwit.Verdict) []byte {
	rest := verdictRest{
		v.Class, v.ReceiverUnknown, v.RetryAfter, v.SunsetAt, v.DisableEndpoint, v.MoveTo, v.RefreshAndRetry, v.Review, v.Problem,
	}
	if rest == (verdictRest{}) {
		return nil
	}
	text, err := json.Marshal(&rest)
	if err != nil {
		return nil // the attempt is recorded even if its sunset, past the year 9999, cannot be
	}
	return text
}

func decodeVerdict(text []byte, v *godwit.Verdict) error {
	if text == nil {
		return nil
	}
	var rest verdictRest
	if err := json.Unmarshal(text, &rest); err != nil {
		return err
	}
	v.Class, v.ReceiverUnknown, v.RetryAfter, v.SunsetAt = rest.Class, rest.ReceiverUnknown, rest.RetryAfter, rest.SunsetAt
	v.DisableEndpoint, v.MoveTo, v.RefreshAndRetry = rest.DisableEndpoint, rest.MoveTo, rest.RefreshAndRetry
	v.Review, v.Problem = rest.Review, rest.Problem
	return nil
}

func encodeTrace(t *godwit.Trace) []byte {
	text, err := json.Marshal(t)
	if err != nil || len(text) == len("{}") {
		return nil
	}
	return text
}
