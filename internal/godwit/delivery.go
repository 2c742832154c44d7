package godwit

import "time"

// A Delivery is one event on its way to one endpoint.
type Delivery struct {
	ID         DeliveryID
	TenantID   TenantID
	EventID    EventID
	EndpointID EndpointID
	Status     DeliveryStatus
	Reason     Reason // reason of the status; empty before the first attempt
	Attempts   int    // attempts recorded, over all runs
	LastStatus int    // HTTP status of the last attempt, 0 when none arrived
	DueAt      time.Time
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Run        Run

	// EventType is set when a delivery is read for people; it is not stored. It is empty if the event was swept.
	EventType string
}

// A Run is the bounded series of attempts that an acceptance or an operator's redelivery starts. The limits count from the
// beginning of the run; the key is the same in every run (EDS T-28).
type Run struct {
	Trigger   Trigger
	Actor     string    // the principal that asked for it; empty for the first run
	Attempts  int       // attempts made in this run
	FirstAt   time.Time // when its first attempt started; zero before
	Refreshed bool      // the one credential refresh was used (EDS-STA-401b)
}

// NewDelivery returns the delivery of an event to an endpoint before its first attempt: pending, and due at once.
func NewDelivery(id DeliveryID, e *Event, endpoint EndpointID, trigger Trigger, now time.Time) Delivery {
	return Delivery{
		ID: id, TenantID: e.TenantID, EventID: e.ID, EndpointID: endpoint, Status: DeliveryPending,
		DueAt: now, CreatedAt: now, UpdatedAt: now, Run: Run{Trigger: trigger},
	}
}

// Attempted counts an attempt that started at the given time.
func (d *Delivery) Attempted(started time.Time) {
	d.Attempts++
	d.Run.Attempts++
	if d.Run.FirstAt.IsZero() {
		d.Run.FirstAt = started
	}
}

// Follow applies the decision after the last attempt. The status is the HTTP status of that attempt.
func (d *Delivery) Follow(decision *Decision, status int, now time.Time) {
	d.Run.Refreshed = d.Run.Refreshed || decision.Trigger == TriggerRefresh
	d.Status, d.Reason, d.LastStatus, d.UpdatedAt, d.DueAt = decision.Status, decision.Reason, status, now, decision.At
}

// Requeue makes the delivery due now. A pending delivery keeps its run. Any other delivery starts a new run, whose limits
// count from now.
func (d *Delivery) Requeue(trigger Trigger, actor string, now time.Time) {
	d.UpdatedAt = now
	if d.Status == DeliveryPending {
		if d.DueAt.After(now) {
			d.DueAt = now
		}
		return
	}
	d.Status, d.Reason, d.DueAt = DeliveryPending, "", now
	d.Run = Run{Trigger: trigger, Actor: actor}
}

// Cancel ends a pending delivery for the given reason.
func (d *Delivery) Cancel(reason Reason, now time.Time) { d.end(DeliveryCancelled, reason, now) }

// Expire ends a pending delivery whose event has passed its retention.
func (d *Delivery) Expire(now time.Time) { d.end(DeliveryExhausted, ReasonRetention, now) }

func (d *Delivery) end(status DeliveryStatus, reason Reason, now time.Time) {
	d.Status, d.Reason, d.UpdatedAt, d.DueAt = status, reason, now, time.Time{}
}

// DeliveryStatus is the state of a delivery. "accepted" means only that the receiver acknowledged the request (EDS-DEF-5).
type DeliveryStatus string

// The states. Only pending changes without an operator.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryAccepted  DeliveryStatus = "accepted"
	DeliveryTerminal  DeliveryStatus = "terminal"  // dead letter: another attempt cannot succeed
	DeliveryExhausted DeliveryStatus = "exhausted" // dead letter: the limits were reached, the last outcome was transient
	DeliveryCancelled DeliveryStatus = "cancelled"
)

// Dead reports whether a delivery in this state has a dead letter.
func (s DeliveryStatus) Dead() bool { return s == DeliveryTerminal || s == DeliveryExhausted }

// Trigger is the cause of a run or an attempt.
type Trigger string

// The triggers.
const (
	TriggerAccept  Trigger = "accept"  // the event was accepted
	TriggerRetry   Trigger = "retry"   // the schedule
	TriggerRefresh Trigger = "refresh" // at once, with a renewed credential
	TriggerMoved   Trigger = "moved"   // at once, after a permanent redirect
	TriggerManual  Trigger = "manual"  // an operator asked to retry now
	TriggerReplay  Trigger = "replay"  // an operator replayed a finished delivery or a dead letter
	TriggerTest    Trigger = "test"    // the endpoint test
)

// Work is a delivery together with its event, as an attempt needs them.
type Work struct {
	Delivery Delivery
	Event    *Event
}
