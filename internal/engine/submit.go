package engine

import (
	"errors"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/godwit"
)

var (
	// ErrInProgress reports that the first request with this key has not been answered yet (409).
	ErrInProgress = errors.New("a request with this idempotency key is still in progress")
	// ErrKeyReused reports a key that came with another payload before (422).
	ErrKeyReused = errors.New("idempotency key was used with another payload")
	// ErrStopping reports that the engine takes nothing more in (503).
	ErrStopping = commit.ErrStopping
)

// A Submission is one request's events: one, or a batch that came under one key. It is stored whole or not at all.
type Submission struct {
	TenantID  godwit.TenantID
	Principal godwit.KeyID
	Events    []Publication
	// Idempotency is nil when the request carried no key.
	Idempotency *Idempotency
}

// A Publication is an event to be accepted. Its members are validated by the caller.
type Publication struct {
	Type        string
	ContentType string
	Body        []byte // kept, not copied
	// Compose, when not nil, completes the event once it has its id and time: for a body that names them. It may set Body and
	// OccurredAt.
	Compose    func(*godwit.Event)
	Attributes map[string]string
	Key        string // the caller's idempotency key; empty: a random one is minted
	Format     string // what Body is; see godwit.Event
	SourceID   string
	OccurredAt time.Time
	// KeptHeaders go with every attempt, as they came.
	KeptHeaders []godwit.KeptHeader
	// Origin is the source that a relayed event came by.
	Origin godwit.Origin
	// Endpoints, when not nil, are the only receivers: patterns and filters are not asked. For tests of an endpoint.
	Endpoints []godwit.EndpointID
	Trigger   godwit.Trigger // empty: accept
}

// Idempotency makes a submission repeatable.
type Idempotency struct {
	ID          [32]byte
	Fingerprint [32]byte
	// Window is how long the answer is replayed. Defaults to the engine's.
	Window time.Duration
	// Respond builds the answer that a repeat will get. It is called before the commit.
	Respond func(events []godwit.Event, fanout []int) *godwit.StoredResponse
}

// A Receipt is what became of a submission.
type Receipt struct {
	Events []godwit.Event // as accepted, with ids and keys
	Fanout []int          // deliveries of each event
	// Replayed, when not nil, is the stored answer to the first request with this key; nothing was stored now.
	Replayed *godwit.StoredResponse
	// ReplayedEvent is the first event that was accepted with that request.
	ReplayedEvent godwit.EventID
	// Err is ErrInProgress or ErrKeyReused; nothing was stored for this submission.
	Err error
}
