package stats

import (
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Level is the length of the slots of a page. The values are stored.
type Level uint8

// The levels.
const (
	Minute Level = iota + 1
	Hour
	Day
)

// Levels lists the levels, finest first.
var Levels = [...]Level{Minute, Hour, Day}

// Seconds returns the length of a slot.
func (l Level) Seconds() int64 { return [...]int64{0, 60, 3600, 24 * 3600}[l] }

// Length returns the length of a slot.
func (l Level) Length() time.Duration { return time.Duration(l.Seconds()) * time.Second }

// slots returns the number of slots of a page.
func (l Level) slots() int64 { return [...]int64{1, 60, 24, 32}[l] }

// String returns the name of a slot's length in the API.
func (l Level) String() string { return [...]string{"", "minute", "hour", "day"}[l] }

// Chunk returns the number of the page that a time, in seconds since 1970, belongs to.
func (l Level) Chunk(at int64) int64 { return at / (l.Seconds() * l.slots()) }

// chunkBegin returns the time at which a page begins.
func (l Level) chunkBegin(chunk int64) int64 { return chunk * l.Seconds() * l.slots() }

// Kind says what a page is about. The values are stored.
type Kind uint8

// The kinds.
const (
	OfServer Kind = iota + 1
	OfEnvironment
	OfTenant
	OfEndpoint
)

// A Key names a page.
type Key struct {
	Level    Level
	Chunk    int64
	Kind     Kind
	Owner    [16]byte          // environment or tenant; zero: the server
	Endpoint godwit.EndpointID // of OfEndpoint
}

// A Page is a stored page. Its parts are sequences of slots; each may be empty.
type Page struct {
	Key
	Counts, Latency, Causes []byte
}

// eachSlot passes the slots of a part of a page from first to last to fn.
func eachSlot(part []byte, first, last int64, fn func(slot int64, body []byte) error) error {
	r := reader{rest: part}
	for len(r.rest) > 0 {
		slot := int64(r.byte())
		body := r.take(r.number())
		if r.bad {
			return ErrDamaged
		}
		if slot > last {
			return nil
		}
		if slot < first {
			continue
		}
		if err := fn(slot, body); err != nil {
			return err
		}
	}
	return nil
}

// setSlot replaces a slot of a part: change gets the old body, or nil, and appends the new one. Slots are in order.
func setSlot(part []byte, slot int64, change func(old *reader, b []byte) []byte) ([]byte, error) {
	r := reader{rest: part}
	begin, end := len(part), len(part)
	old := reader{}
	for len(r.rest) > 0 {
		at := len(part) - len(r.rest)
		this := int64(r.byte())
		body := r.take(r.number())
		if r.bad {
			return nil, ErrDamaged
		}
		if this >= slot {
			begin, end = at, at
			if this == slot {
				end, old.rest = len(part)-len(r.rest), body
			}
			break
		}
	}
	fresh := change(&old, nil)
	if old.bad {
		return nil, ErrDamaged
	}
	b := make([]byte, 0, len(part)+len(fresh)+4)
	b = append(b, part[:begin]...)
	b = append(b, byte(slot))
	b = appendNumber(b, int64(len(fresh)))
	b = append(b, fresh...)
	return append(b, part[end:]...), nil
}
