package management

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/store"
)

// SealedStore is the part of the store that holds sealed values.
type SealedStore interface {
	SealedRows(ctx context.Context, after string, limit int) ([]store.SealedRow, error)
	ReplaceSealed(ctx context.Context, row store.SealedRow, sealed []byte) error
}

// Reencryption counts the progress.
type Reencryption struct {
	Seen     int // sealed values read
	Resealed int // of those, sealed anew with the active key
	Changed  int // of those, already sealed anew by a concurrent change
}

// Reencrypt seals anew every value that was sealed with a key other than the active one. It may run beside a server, and
// more than once. After it has returned without error, the other keys can be removed from the ring. Progress, if not nil,
// is called after every page.
func Reencrypt(ctx context.Context, s SealedStore, ring *keyring.Ring, progress func(Reencryption)) (Reencryption, error) {
	const page = 200
	var done Reencryption
	after := ""
	for {
		rows, err := s.SealedRows(ctx, after, page)
		if err != nil {
			return done, fmt.Errorf("read sealed values: %w", err)
		}
		if len(rows) == 0 {
			return done, nil
		}
		for _, row := range rows {
			if err := reseal(ctx, s, ring, row, &done); err != nil {
				return done, err
			}
		}
		after = rows[len(rows)-1].Ref
		if progress != nil {
			progress(done)
		}
	}
}

func reseal(ctx context.Context, s SealedStore, ring *keyring.Ring, row store.SealedRow, done *Reencryption) error {
	done.Seen++
	if !ring.Stale(row.Sealed) {
		return nil
	}
	bound := boundTo(row.Bound)
	plain, err := ring.Open(row.Sealed, bound)
	if err != nil {
		return fmt.Errorf("open %s: %w", row.Ref, err)
	}
	switch err := s.ReplaceSealed(ctx, row, ring.Seal(plain, bound)); {
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
		done.Changed++
	case err != nil:
		return fmt.Errorf("replace %s: %w", row.Ref, err)
	default:
		done.Resealed++
	}
	return nil
}

// CheckSealed returns why the ring does not open a sealed value, or nil.
func CheckSealed(ring *keyring.Ring, row store.SealedRow) error {
	_, err := ring.Open(row.Sealed, boundTo(row.Bound))
	return err
}

// boundTo returns the context of a row's sealed value, by the row's id.
func boundTo(id string) string {
	if endpoint, err := godwit.ParseEndpointID(id); err == nil {
		return keyring.ForEndpoint(endpoint)
	}
	if secret, err := godwit.ParseSecretID(id); err == nil {
		return keyring.ForSecret(secret)
	}
	if source, err := godwit.ParseSourceID(id); err == nil {
		return keyring.ForSource(source)
	}
	return id
}
