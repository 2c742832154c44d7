package command

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Lister is a Store that lists its records, so that they can be sealed anew.
type Lister interface {
	Store
	// Records lists the records after the one with the given tenant and key, in an order of the store's choice that has
	// each of them once. Both are empty for the first page.
	Records(ctx context.Context, tenant, key string, limit int) ([]Record, error)
}

// A Resealer is a Sealer with several keys, of which the active one seals.
type Resealer interface {
	Sealer
	// Stale reports whether a value was sealed with a key other than the active one.
	Stale(sealed []byte) bool
}

// Resealing counts the records that Reseal has processed.
type Resealing struct {
	Seen     int // records read
	Resealed int // of those, the records sealed anew
	// UnderWay counts stale records that are left to their executors, which an outside change would fence off. The end of
	// a command seals its record anew.
	UnderWay int
	// Broken names records that no key opens or that were tampered with. An operator must examine them.
	Broken []string
}

// Reseal seals records anew that were sealed with a key other than the active one: outcome, envelope and MAC, by the same
// compare-and-set as any change of a record. It may run beside executors, and more than once. Once no record is under way
// or broken, the other keys can be removed.
func Reseal(ctx context.Context, s Lister, sealer Resealer, now func() time.Time) (done Resealing, err error) {
	r := &resealing{Resealing: &done, vault: vault{sealer}, store: s, sealer: sealer, now: now}
	var tenant, key string
	for {
		records, err := s.Records(ctx, tenant, key, atOnce)
		if err != nil {
			return done, fmt.Errorf("list commands: %w", err)
		}
		if len(records) == 0 {
			return done, nil
		}
		for i := range records {
			if err := r.reseal(ctx, &records[i]); err != nil {
				return done, err
			}
		}
		last := &records[len(records)-1]
		tenant, key = last.Tenant, last.Key
	}
}

// resealing is a run of Reseal.
type resealing struct {
	*Resealing
	vault
	store  Lister
	sealer Resealer
	now    func() time.Time
}

func (r *resealing) reseal(ctx context.Context, rec *Record) error {
	r.Seen++
	for rec != nil {
		stale := r.sealer.Stale(rec.MAC) || len(rec.Outcome) > 0 && r.sealer.Stale(rec.Outcome) || len(rec.Envelope) > 0 && r.sealer.Stale(rec.Envelope)
		if !stale {
			return nil
		}
		next, err := r.resealed(rec)
		switch {
		case err != nil:
			r.Broken = append(r.Broken, rec.CommandID)
			return nil
		case !rec.Status.Terminal():
			r.UnderWay++
			return nil
		}
		results, err := r.store.Advance(ctx, r.now(), []*Step{{Tenant: rec.Tenant, Key: rec.Key, Expect: rec.Version,
			Settle: func(Applied) (Change, error) { return Change{Record: next}, nil }}})
		if err = errors.Join(err, stepError(results)); err != nil {
			return fmt.Errorf("seal command %s anew: %w", rec.CommandID, err)
		}
		if !results[0].Refused {
			r.Resealed++
			return nil
		}
		rec = results[0].Stored // as another writer left it; nil: it was swept
	}
	return nil
}

func stepError(results []Result) error {
	if len(results) == 0 {
		return nil
	}
	return results[0].Err
}

// resealed returns the next version of a record, with the same content under the active key.
func (v vault) resealed(rec *Record) (*Record, error) {
	if err := v.genuine(rec); err != nil {
		return nil, err
	}
	next := rec.next()
	for _, part := range []struct {
		sealed *[]byte
		bound  string
	}{{&next.Outcome, outcomeBound(rec.Tenant, rec.Key)}, {&next.Envelope, envelopeBound(rec.Tenant, rec.Key)}} {
		if len(*part.sealed) == 0 {
			continue
		}
		plain, err := v.sealer.Open(*part.sealed, part.bound)
		if err != nil {
			return nil, errTampered
		}
		*part.sealed = v.sealer.Seal(plain, part.bound)
	}
	v.authenticate(next)
	return next, nil
}
