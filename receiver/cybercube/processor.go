package cybercube

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Status is how processing an event ended.
type Status string

// The results (CCW-IDM-3).
const (
	StatusDuplicate  Status = "duplicate"  // it was processed before
	StatusConcurrent Status = "concurrent" // it is being processed elsewhere
	StatusProcessed  Status = "processed"
)

// ResultUnhandled is the result of events without a handler: they are acknowledged, not refused (CCW-IDM-12).
const ResultUnhandled = "unhandled"

// A Result is the result of a [Processor] for an event.
type Result struct {
	Status Status `json:"status"`
	// Original is the earlier record of a duplicate.
	Original *ProcessedEvent `json:"original,omitempty"`
	// Message explains a concurrent result.
	Message string `json:"message,omitempty"`
	// Result is the handler's result for a processed event.
	Result string `json:"result,omitempty"`
}

// A ProcessedEvent is the record of an event.
type ProcessedEvent struct {
	EventID     string    `json:"event_id"`
	ProcessedAt time.Time `json:"processed_at"`
	Result      string    `json:"result"`
}

// Events remembers processed events. Every method is one atomic step, also across processes (CCW-IDM-7).
type Events interface {
	// Get finds a processed event; nil if there is none.
	Get(ctx context.Context, eventID string) (*ProcessedEvent, error)
	// Lock takes the lock of an event, unless another holder took it after expired or the event is processed. The token
	// identifies the holder.
	Lock(ctx context.Context, e *Event, now, expired time.Time) (token string, ok bool, err error)
	// MarkProcessed keeps the result. It reports false, and keeps nothing, if the holder has lost the lock.
	MarkProcessed(ctx context.Context, eventID, token, result string, now time.Time) (bool, error)
	// ReleaseLock frees the event, if the holder still has the lock.
	ReleaseLock(ctx context.Context, eventID, token string) error
	// Cleanup drops at most limit events that were received before a time and returns how many it dropped.
	Cleanup(ctx context.Context, before time.Time, limit int) (int, error)
}

// A Handler processes an event of one type; its result is kept.
type Handler func(ctx context.Context, e *Event) (result string, err error)

// ProcessorOptions configure a [Processor].
type ProcessorOptions struct {
	// Events stores processed events. Required.
	Events Events
	// Handlers by type of event. Events of other types are acknowledged with the result unhandled.
	Handlers map[string]Handler
	// LockTTL is how long a lock holds. Defaults to 5 minutes (CCW-IDM-6).
	LockTTL time.Duration
	// Retention is how long events are remembered; at least 7 days. Defaults to 30 days (CCW-IDM-9).
	Retention time.Duration
	// Clock returns the time. Defaults to time.Now.
	Clock func() time.Time
}

// A Processor follows the standard: look up, lock, handle, mark. On an error it releases the lock, so that a retry can process
// the event (CCW-IDM-4). It may be used concurrently.
type Processor struct{ o ProcessorOptions }

// NewProcessor makes a processor.
func NewProcessor(o ProcessorOptions) (*Processor, error) {
	if o.Events == nil {
		return nil, errors.New("make processor: set Events")
	}
	if o.LockTTL == 0 {
		o.LockTTL = 5 * time.Minute
	}
	if o.Retention == 0 {
		o.Retention = 30 * 24 * time.Hour
	}
	if o.Retention < 7*24*time.Hour || o.LockTTL < 0 {
		return nil, errors.New("make processor: Retention must be at least 7 days")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Processor{o}, nil
}

// ErrNoEventID is returned for events without an id, which cannot be deduplicated.
var ErrNoEventID = errors.New("the event has no id")

// Process handles an event, unless it was processed before or is being processed.
func (p *Processor) Process(ctx context.Context, e *Event) (*Result, error) {
	if e.ID == "" {
		return nil, ErrNoEventID
	}
	if found, err := p.duplicate(ctx, e); found != nil || err != nil {
		return found, err
	}
	now := p.o.Clock()
	token, ok, err := p.o.Events.Lock(ctx, e, now, now.Add(-p.o.LockTTL))
	if err != nil {
		return nil, fmt.Errorf("lock event: %w", err)
	}
	if !ok { // another process has it, or has just finished it
		if found, err := p.duplicate(ctx, e); found != nil || err != nil {
			return found, err
		}
		return &Result{Status: StatusConcurrent, Message: "Event being processed"}, nil
	}
	result, err := p.handle(ctx, e)
	if err != nil {
		// The context may have ended with the request; the lock must be released all the same.
		return nil, errors.Join(err, p.o.Events.ReleaseLock(context.WithoutCancel(ctx), e.ID, token))
	}
	marked, err := p.o.Events.MarkProcessed(context.WithoutCancel(ctx), e.ID, token, result, p.o.Clock())
	switch {
	case err != nil:
		return nil, fmt.Errorf("mark event: %w", err)
	case !marked:
		return nil, errors.New("mark event: the lock was lost while it was handled")
	}
	return &Result{Status: StatusProcessed, Result: result}, nil
}

func (p *Processor) duplicate(ctx context.Context, e *Event) (*Result, error) {
	original, err := p.o.Events.Get(ctx, e.ID)
	if err != nil {
		return nil, fmt.Errorf("look up event: %w", err)
	}
	if original == nil {
		return nil, nil
	}
	return &Result{Status: StatusDuplicate, Original: original}, nil
}

func (p *Processor) handle(ctx context.Context, e *Event) (result string, err error) {
	handler, ok := p.o.Handlers[e.Type]
	if !ok {
		return ResultUnhandled, nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("handle event: panic: %v", v)
		}
	}()
	return handler(ctx, e)
}

// Cleanup drops events older than the retention, in small steps, and returns their number.
func (p *Processor) Cleanup(ctx context.Context) (int, error) {
	const step = 1000
	total := 0
	for {
		n, err := p.o.Events.Cleanup(ctx, p.o.Clock().Add(-p.o.Retention), step)
		total += n
		if err != nil || n < step {
			return total, err
		}
	}
}
