package godwit

import "time"

// A DeadLetter is a delivery that ended without being accepted. It holds a copy of its event, so that it can be replayed
// or exported after the event itself has been swept.
type DeadLetter struct {
	Delivery   Delivery // Status is terminal or exhausted
	Event      *Event
	DeadAt     time.Time
	ReplayedAt time.Time // time of the replay; zero while it is open. A replay that fails again makes a new dead letter
	LastDetail string    // one line about the last attempt
}
