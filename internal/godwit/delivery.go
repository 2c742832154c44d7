package godwit

import "time"

// A Delivery is one event on its way to one endpoint.
type Delivery struct {
	ID         DeliveryID
	TenantID   TenantID
	EventID    EventID
	EndpointID EndpointID
	Status     DeliveryStatus
	Reason     Reason // why it is where it is; empty before the first attempt
	Attempts   int    // attempts recorded, over all runs
	LastStatus int    // HTTP status of the last attempt, 0 when none arrived
	DueAt      time.Time
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Run        Run

	// EventType is filled in when a delivery is read for people; it is not stored with it. Empty when the event was swept.
	EventType string
}

// A Run is the bounded series of attempts that one acceptance or one operator's redelivery starts. The bounds count from
// its beginning; the key does not change with it (EDS T-28).
type Run struct {
	Trigger   Trigger
	Actor     string    // who asked for it; empty for the first
	Attempts  int       // attempts made in this run
	FirstAt   time.Time // when its first attempt started; zero before
	Refreshed bool      // the one credential refresh was used (EDS-STA-401b)
}

// DeliveryStatus is the state of a delivery. "accepted" means that the receiver acknowledged the request and nothing
// more (EDS-DEF-5).
type DeliveryStatus string

// The states. Pending is the only one that moves by itself.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryAccepted  DeliveryStatus = "accepted"
	DeliveryTerminal  DeliveryStatus = "terminal"  // dead letter: sending it again cannot help
	DeliveryExhausted DeliveryStatus = "exhausted" // dead letter: the bounds were reached, the last outcome was transient
	DeliveryCancelled DeliveryStatus = "cancelled"
)

// Dead reports whether the state is one that leaves a dead letter.
func (s DeliveryStatus) Dead() bool { return s == DeliveryTerminal || s == DeliveryExhausted }

// Trigger says what started a run or an attempt.
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

// Work is a delivery together with the event it carries: what an attempt needs.
type Work struct {
	Delivery Delivery
	Event    *Event
}
