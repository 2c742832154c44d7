package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// An ordinary index over random keys would write a page of its own for nearly every event. The keys of events are therefore indexed afterwards, in segments: one row for
// many events, which the sweep writes.
const (
	keySegment  = 8192 // events in a segment
	keySegments = 16   // segments that one sweep writes at most
	keyEntry    = 8    // bytes of an event in a segment
	mostKeyed   = 5000 // events that may have the key; beyond that it is frequent, and a walk through the newest events finds some soon
)

// eventKeys writes the index over keys.
type eventKeys struct {
	*database
	size atomic.Int64 // events in a segment; less in tests
}

func keyHash(tenant godwit.TenantID, key string) uint32 {
	return crc32.Update(crc32.Checksum(tenant[:], castagnoli), castagnoli, []byte(key))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// extend writes segments for events that have none, while a whole segment can be filled. more says that there are more of them.
func (s *eventKeys) extend(ctx context.Context) (more bool, err error) {
	for range keySegments {
		first, last, hashes, err := s.next(ctx)
		if err != nil || hashes == nil {
			return false, err
		}
		// Without a sync: a segment that a power failure takes is written again. The events it lists were stored before it, so it never outlives them.
		err = s.writeSoft(ctx, "index keys of events", func(c *conn) error {
			_, err := c.exec("INSERT INTO event_keys (first, last, hashes) VALUES (?, ?, ?)", first, last, hashes)
			return err
		})
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// next reads the events of the next segment; hashes is nil if there are too few.
func (s *eventKeys) next(ctx context.Context) (first, last int64, hashes []byte, err error) {
	size := int(s.size.Load())
	err = s.read(ctx, "read keys of events", func(c *conn) error {
		if first, err = indexedKeys(ctx, c); err != nil {
			return err
		}
		first++
		entries := make([]uint64, 0, size)
		err := c.each(ctx, "SELECT n, tenant_id, key FROM events WHERE n >= ? ORDER BY n LIMIT ?", []driver.Value{first, int64(size)}, func(r *rows) error {
			last = r.int(0)
			if len(entries) == 0 {
				first = last // the numbers before it are of events that have gone
			}
			entries = append(entries, uint64(keyHash(r.id(1), r.text(2)))<<32|uint64(uint32(last-first)))
			return nil
		})
		if err != nil || len(entries) < size || last-first > 1<<31 {
			return err
		}
		slices.Sort(entries)
		hashes = make([]byte, 0, keyEntry*size)
		for _, e := range entries {
			hashes = binary.BigEndian.AppendUint64(hashes, e)
		}
		return nil
	})
	return first, last, hashes, err
}

// indexedKeys returns the last event that is in a segment. The events behind it are in none.
func indexedKeys(ctx context.Context, c *conn) (last int64, err error) {
	_, err = c.one(ctx, "SELECT last FROM event_keys ORDER BY first DESC LIMIT 1", nil, func(r *rows) { last = r.int(0) })
	return last, err
}

// sweepKeys removes segments whose events have all gone.
func sweepKeys(c *conn) error {
	_, err := c.exec("DELETE FROM event_keys WHERE last < ifnull((SELECT min(n) FROM events), 0)")
	return err
}

// unlistKeys is called after an event was removed. If it was the last one, its number goes to the next event: segments that list events behind the last
// one that is left must go.
func unlistKeys(ctx context.Context, c *conn, n int64) error {
	later, err := c.one(ctx, "SELECT 1 FROM events WHERE n > ? LIMIT 1", []driver.Value{n}, func(*rows) {})
	if err != nil || later {
		return err
	}
	_, err = c.exec("DELETE FROM event_keys WHERE last > ifnull((SELECT max(n) FROM events), 0)")
	return err
}

// keyed returns the events that may have a key: those with its hash, and those with the key among the events that are in no segment. ok is false if they are many.
func keyed(ctx context.Context, c *conn, tenant godwit.TenantID, key string) (found []int64, ok bool, err error) {
	want := uint64(keyHash(tenant, key)) << 32
	last := int64(0)
	err = c.each(ctx, "SELECT first, last, hashes FROM event_keys ORDER BY first", nil, func(r *rows) error {
		first, hashes := r.int(0), r.blob(2)
		last = r.int(1)
		entry := func(i int) uint64 { return binary.BigEndian.Uint64(hashes[i*keyEntry:]) }
		n := len(hashes) / keyEntry
		low, high := 0, n
		for low < high {
			if middle := (low + high) / 2; entry(middle) < want {
				low = middle + 1
			} else {
				high = middle
			}
		}
		for ; low < n && entry(low)>>32 == want>>32 && len(found) <= mostKeyed; low++ {
			found = append(found, first+int64(uint32(entry(low))))
		}
		return nil
	})
	if err != nil || len(found) > mostKeyed {
		return nil, false, err
	}
	err = c.each(ctx, "SELECT n FROM events NOT INDEXED WHERE n > ? AND tenant_id = ? AND key = ? LIMIT ?",
		[]driver.Value{last, tenant[:], key, int64(mostKeyed + 1)}, func(r *rows) error { found = append(found, r.int(0)); return nil })
	return found, len(found) <= mostKeyed, err
}

// listKeyed lists the events with a key.
func listKeyed(ctx context.Context, c *conn, f *store.EventFilter, p store.Page) ([]godwit.Event, error) {
	found, ok, err := keyed(ctx, c, f.TenantID, f.Key)
	if err != nil || ok && len(found) == 0 {
		return nil, err
	}
	from := "events e INDEXED BY events_id"
	if ok {
		from = "events e NOT INDEXED" // the order comes from n
	}
	q := selectedEvents(from, f, p)
	if ok {
		numbers := []byte{'['}
		for i, n := range found {
			if i > 0 {
				numbers = append(numbers, ',')
			}
			numbers = strconv.AppendInt(numbers, n, 10)
		}
		q.where("e.n IN (SELECT value FROM json_each(?))", string(append(numbers, ']')))
	}
	return listedEvents(ctx, c, q)
}
