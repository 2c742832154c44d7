package app

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// Names of the check values with which a store recognises its own keys.
const (
	ringCheck     = "keyring"  // a value sealed with the ring
	evidenceCheck = "evidence" // the public key
)

// CheckRing refuses a key ring that is not the store's own: with another ring no sealed value would open, and every
// attempt would fail. A store without a check value accepts the ring if it holds no sealed values, or if the ring opens
// some of them.
func CheckRing(ctx context.Context, s store.Store, ring *keyring.Ring) error {
	check, err := s.KeyCheck(ctx, ringCheck)
	if errors.Is(err, store.ErrNotFound) {
		if err := checkUnchecked(ctx, s, ring); err != nil {
			return err
		}
		if check, err = adopt(ctx, s, ringCheck, ring.Seal([]byte(ringCheck), ringCheck)); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if _, err := ring.Open(check, ringCheck); err != nil {
		return wrongRing(err)
	}
	return nil
}

func wrongRing(err error) error {
	return fmt.Errorf("the key ring is not this store's own (%w); start with the key ring that the store was made with, "+
		"or put its lines behind those of the new one and run \"godwit keys reencrypt\"", err)
}

// checkUnchecked tests a ring against the sealed values of a store that has no check value yet.
func checkUnchecked(ctx context.Context, s store.Store, ring *keyring.Ring) error {
	const page = 100
	var closed error
	for after := ""; ; {
		rows, err := s.SealedRows(ctx, after, page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := management.CheckSealed(ring, row); err == nil {
				return nil
			} else if closed == nil {
				closed = err
			}
		}
		if len(rows) < page {
			break
		}
		after = rows[len(rows)-1].Ref
	}
	if closed != nil {
		return wrongRing(closed)
	}
	return nil
}

// adopt stores a check value unless another process stored one first, and returns the stored one.
func adopt(ctx context.Context, s store.Store, name string, value []byte) ([]byte, error) {
	err := s.SetKeyCheck(ctx, name, nil, value)
	if err == nil {
		return value, nil
	}
	if errors.Is(err, store.ErrConflict) {
		return s.KeyCheck(ctx, name)
	}
	return nil, err
}

// ResealRingCheck seals the check value anew with the ring's first key. Once all other values are sealed with it, the
// other keys can be removed.
func ResealRingCheck(ctx context.Context, s store.Store, ring *keyring.Ring) error {
	check, err := s.KeyCheck(ctx, ringCheck)
	if err != nil || !ring.Stale(check) {
		return err
	}
	err = s.SetKeyCheck(ctx, ringCheck, check, ring.Seal([]byte(ringCheck), ringCheck))
	if errors.Is(err, store.ErrConflict) {
		return nil // another process has done it
	}
	return err
}

// CheckEvidenceKey refuses an evidence key that is not the store's own: a chain with checkpoints of two keys would not verify
// with either. A store without a check value accepts the key that signed its last checkpoint, or any key if it has none.
func CheckEvidenceKey(ctx context.Context, s store.Store, key ed25519.PrivateKey) error {
	public := key.Public().(ed25519.PublicKey)
	own, err := s.KeyCheck(ctx, evidenceCheck)
	if errors.Is(err, store.ErrNotFound) {
		signer, err := lastSigner(ctx, s)
		if err != nil {
			return err
		}
		if signer != "" && signer != evidence.KeyID(public) {
			return wrongEvidenceKey(evidence.KeyID(public), signer)
		}
		if own, err = adopt(ctx, s, evidenceCheck, public); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if !bytes.Equal(own, public) {
		return wrongEvidenceKey(evidence.KeyID(public), evidence.KeyID(own))
	}
	return nil
}

func wrongEvidenceKey(given, own string) error {
	return fmt.Errorf("commands-evidence-key: the key %s is not the one that this store's evidence is signed with, %s; "+
		"give every node that one with --commands-evidence-key. If it is lost, for instance with the data directory of a container, "+
		"make a key that is kept and change to it for good with \"godwit keys adopt-evidence FILE\"", given, own)
}

// lastSigner returns the id of the key that signed the latest checkpoint of all chains of a store, or "" if there is none.
func lastSigner(ctx context.Context, s store.Store) (string, error) {
	const page = 100
	var last *evidence.Item
	for after := ""; ; {
		heads, err := s.EvidenceHeads(ctx, after, page)
		if err != nil {
			return "", err
		}
		for _, h := range heads {
			after = h.Tenant
			c, err := lastCheckpoint(ctx, s, h.Tenant, h.Seq)
			if err != nil {
				return "", err
			}
			if c != nil && (last == nil || c.At.After(last.At)) {
				last = c
			}
		}
		if len(heads) < page {
			break
		}
	}
	if last == nil {
		return "", nil
	}
	return last.Checkpoint.KeyID, nil
}

// lastCheckpoint reads a chain backwards until it finds a checkpoint. It returns nil if the chain has none.
func lastCheckpoint(ctx context.Context, s store.Store, tenant string, seq int64) (*evidence.Item, error) {
	const page = 1000
	for end := seq; end > 0; end -= page {
		after := max(end-page, 0)
		items, err := s.Evidence(ctx, command.EvidenceQuery{Tenant: tenant, After: after, Limit: int(end - after)})
		if err != nil {
			return nil, err
		}
		for i, item := range slices.Backward(items) {
			if item.Checkpoint != nil {
				return &items[i], nil
			}
		}
	}
	return nil, nil
}

// AdoptEvidenceKey makes a key the one that signs the store's evidence from now on.
func AdoptEvidenceKey(ctx context.Context, s store.Store, key ed25519.PrivateKey) error {
	public := key.Public().(ed25519.PublicKey)
	old, err := s.KeyCheck(ctx, evidenceCheck)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return s.SetKeyCheck(ctx, evidenceCheck, old, public)
}
