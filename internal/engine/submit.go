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
	// ErrKeyReused reports that the key was used before with another payload (422).
	ErrKeyReused = errors.New("idempotency key was used with another payload")
	// ErrFanouts reports that too many large fan-outs of the tenant are open (429). Nothing was stored.
	ErrFanouts = errors.New("too many large fan-outs of the tenant are open")
	// ErrBroadcasts reports that too many broadcasts of the environment are open (429). Nothing was stored.
	ErrBroadcasts = errors.New("too many broadcasts of the environment are open")
	// ErrStopping reports that the engine accepts no more events (503).
	ErrStopping = commit.ErrStopping
)

// A Submission is the events of one request: one event, or a batch under one key. It is stored whole or not at all.
type Submission struct {
	TenantID  godwit.TenantID
	Principal godwit.KeyID
	Events    []Publication
	Own       bool // the server's own event: it is not refused for open fan-outs
	// Idempotency is nil when the request carried no key.
	Idempotency *Idempotency
}

// A Publication is an event to accept. The caller has validated its members.
type Publication struct {
	Type        string
	ContentType string
	Body        []byte // used without copying
	// Compose, when not nil, completes the event once its id and time are set, for bodies that contain them. It may set Body
	// and OccurredAt. Submit may call it again for another event, if the first one was not stored.
	Compose    func(*godwit.Event)
	Attributes map[string]string
	Key        string // the caller's idempotency key; empty: Submit makes a random one
	Format     string // format of Body; see godwit.Event
	SourceID   string
	OccurredAt time.Time
	// KeptHeaders are sent unchanged with every attempt.
	KeptHeaders []godwit.KeptHeader
	// Origin is the source of a relayed event.
	Origin godwit.Origin
	// Endpoints, when not nil, are the only receivers; patterns and filters are ignored. For tests of an endpoint.
	Endpoints []godwit.EndpointID
	// Except, when not zero, is an endpoint that does not receive the event although it may match.
	Except  godwit.EndpointID
	Trigger godwit.Trigger // empty: accept
}

// Idempotency makes a submission repeatable.
type Idempotency struct {
	ID          [32]byte
	Fingerprint [32]byte
	// Window is how long the answer is replayed. Defaults to Config.IdempotencyWindow.
	Window time.Duration
	// Respond builds the answer to later requests with the same key. Submit calls it before each commit.
	Respond func(events []godwit.Event, fanout []int) *godwit.StoredResponse
}

// A Receipt is the result of a submission.
type Receipt struct {
	Events []godwit.Event // as accepted, with ids and keys
	Fanout []int          // number of deliveries of each event
	// Replayed, when not nil, is the stored answer to the first request with this key; Submit stored nothing.
	Replayed *godwit.StoredResponse
	// ReplayedEvent is the first event of that request.
	ReplayedEvent godwit.EventID
	// Err is ErrInProgress or ErrKeyReused; nothing was stored for this submission.
	Err error
}
