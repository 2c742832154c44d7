package idempotency

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// A reservation is the key that a running request holds.
type reservation struct {
	record *godwit.IdempotencyRecord // created when the key was first reserved
	// again reports that an earlier request under the key was interrupted. It may have had its effect.
	again bool
	store store.Idempotency
}

type reservationKey struct{}

func withReservation(ctx context.Context, r reservation) context.Context {
	return context.WithValue(ctx, reservationKey{}, r)
}

// Held reports whether the request has an Idempotency-Key. If it is interrupted, a repeat under the key completes it.
func Held(ctx context.Context) bool {
	_, held := ctx.Value(reservationKey{}).(reservation)
	return held
}

// Again reports whether an earlier request under the key was interrupted. It may have had its effect.
func Again(ctx context.Context) bool {
	r, _ := ctx.Value(reservationKey{}).(reservation)
	return r.again
}

// ID returns the id of the nth object of its kind that the request creates. It follows from the request's key, so that a repeat
// has the same one. Without a key it is the fresh one.
func ID[K godwit.Kind](ctx context.Context, fresh godwit.ID[K], nth int) godwit.ID[K] {
	r, held := ctx.Value(reservationKey{}).(reservation)
	if !held {
		return fresh
	}
	return godwit.DerivedID[K](r.record.CreatedAt, binary.BigEndian.AppendUint32(bytes.Clone(r.record.ID[:]), uint32(nth)))
}

// RecordID returns the id of a record that the request stores together with its events, so that a repeat does not store them again.
// It follows from the request's key; without a key it returns false.
func RecordID(ctx context.Context) (id [32]byte, held bool) {
	r, held := ctx.Value(reservationKey{}).(reservation)
	if !held {
		return id, false
	}
	return sha256.Sum256(binary.BigEndian.AppendUint64(bytes.Clone(r.record.ID[:]), uint64(r.record.CreatedAt.UnixMicro()))), true
}

// CheckHeld fails if another request has taken over the key of this one, whose lease is over. A request must check this before it
// undoes what it finds under its key: it may be the effect of the other one.
func CheckHeld(ctx context.Context) error {
	r, held := ctx.Value(reservationKey{}).(reservation)
	if !held {
		return nil
	}
	now, err := r.store.Recorded(ctx, r.record.ID, r.record.CreatedAt)
	if errors.Is(err, store.ErrNotFound) || err == nil && !now.ExpiresAt.Equal(r.record.ExpiresAt) {
		return errTakenOver()
	}
	if err != nil {
		return fmt.Errorf("check idempotency key: %w", err)
	}
	return nil
}

func errTakenOver() error {
	return problem.KeyInProgress.With("the request took too long, and another one with this key has taken its place")
}

// onceTries bounds how often Once passes over an object that was deleted or revoked after an interrupted request created it.
const onceTries = 20

// Once creates an object once under the key of the request, although the object and the answer to the key are stored one after
// the other. The object's id follows from the key. A request that is repeated because the first was interrupted between the two
// therefore meets the object of the first, and find returns it in place of a second one. The first may still be under way in the
// database when the repeat begins, so a repeat also looks for its object after create has failed.
//
// Create fails with store.ErrConflict if the id is taken; find fails with store.ErrNotFound if there is no such object or it is
// deleted. Without a key, Once only calls create, with a new id.
func Once[K godwit.Kind, T any](ctx context.Context, now time.Time, find, create func(godwit.ID[K]) (T, error)) (T, error) {
	fresh := godwit.NewID[K](now)
	if !Held(ctx) {
		return create(fresh)
	}
	for try := 0; ; try++ {
		id := ID(ctx, fresh, try)
		if Again(ctx) {
			// First, because the object counts towards the limits that create checks.
			if found, err := find(id); !errors.Is(err, store.ErrNotFound) {
				return found, err
			}
		}
		made, err := create(id)
		taken := errors.Is(err, store.ErrConflict)
		if err == nil || !taken && !Again(ctx) {
			return made, err
		}
		if found, err := find(id); !errors.Is(err, store.ErrNotFound) {
			return found, err
		}
		if !taken || !Again(ctx) || try+1 == onceTries {
			return made, err
		}
	}
}
