package attempt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// identities hold the signing keys of environments, for the endpoints that their environment signs for. The targets of these endpoints
// share one identity, so that a rotation concerns none of them.
type identities struct {
	read func(ctx context.Context, id godwit.EnvironmentID) ([]godwit.Secret, error)

	reading sync.Mutex // of two reads, the result of the later one must win

	mu    sync.Mutex
	known map[godwit.EnvironmentID]*identity
	stale map[godwit.EnvironmentID]bool // could not be read; the zero id stands for all
}

// An identity is the signing identity of an environment.
type identity struct{ keys atomic.Pointer[keySet] }

// A keySet is what is known of an environment's keys at a time. It never changes, but for the signers made from it.
type keySet struct {
	secrets []godwit.Secret // sealed
	ready   chan struct{}   // not nil: the keys have changed and are being read; closed when another set is there
	err     error           // why there are no keys

	mu   sync.Mutex
	made map[signerKind]madeSigner
}

// Endpoints with the same profile and rotation share a signer.
type signerKind struct{ profile, rotation string }

type madeSigner struct {
	signer profile.Signer
	until  time.Time
	err    error
}

// keysWait is how long a request waits for keys that are being read.
const keysWait = 5 * time.Second

var errKeysUnread = errors.New("the signing keys of the environment have changed and could not be read yet")

// of returns the identity of an environment.
func (is *identities) of(id godwit.EnvironmentID) *identity {
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.locked(id)
}

func (is *identities) locked(id godwit.EnvironmentID) *identity {
	found := is.known[id]
	if found == nil {
		found = &identity{}
		found.keys.Store(&keySet{})
		is.known[id] = found
	}
	return found
}

// affected lists the identities that a read concerns: one, or all that are known if the id is zero.
func (is *identities) affected(id godwit.EnvironmentID) map[godwit.EnvironmentID]*identity {
	is.mu.Lock()
	defer is.mu.Unlock()
	if !id.IsZero() {
		return map[godwit.EnvironmentID]*identity{id: is.locked(id)}
	}
	all := make(map[godwit.EnvironmentID]*identity, len(is.known))
	for id, found := range is.known {
		all[id] = found
	}
	return all
}

// changed reads the keys of an environment anew, or of all if the id is zero. From the call on nothing is signed with the keys from before:
// one of them may have been revoked. If the keys cannot be read, nothing is signed until they are.
func (is *identities) changed(ctx context.Context, id godwit.EnvironmentID) error {
	is.reading.Lock()
	defer is.reading.Unlock()
	ready := make(chan struct{})
	defer close(ready)
	for _, found := range is.affected(id) {
		found.keys.Store(&keySet{ready: ready})
	}
	keys, err := is.read(ctx, id)
	byID := map[godwit.EnvironmentID][]godwit.Secret{}
	for i := range keys {
		of := godwit.EnvironmentID(keys[i].TenantID)
		byID[of] = append(byID[of], keys[i])
	}
	is.mu.Lock()
	defer is.mu.Unlock()
	if err != nil {
		is.stale[id] = true
		err = fmt.Errorf("read signing keys: %w", err)
	} else if delete(is.stale, id); id.IsZero() {
		clear(is.stale)
	}
	for of := range byID {
		is.locked(of)
	}
	for of, found := range is.known {
		if of != id && !id.IsZero() {
			continue
		}
		next := &keySet{secrets: byID[of]}
		if err != nil {
			next = &keySet{err: errKeysUnread}
		}
		found.keys.Store(next)
	}
	return err
}

// unread lists the environments whose keys could not be read.
func (is *identities) unread() (list []godwit.EnvironmentID) {
	is.mu.Lock()
	defer is.mu.Unlock()
	for id := range is.stale {
		list = append(list, id)
	}
	return list
}

// current returns the keys, once they have been read.
func (i *identity) current() *keySet {
	set := i.keys.Load()
	if set.ready == nil {
		return set
	}
	limit := time.NewTimer(keysWait)
	defer limit.Stop()
	for set.ready != nil {
		select {
		case <-set.ready:
			set = i.keys.Load()
		case <-limit.C:
			return &keySet{err: errKeysUnread} // not the identity's set: the next request looks again
		}
	}
	return set
}

// signer returns the signer that the endpoints of a kind share.
func (s *keySet) signer(m *Maker, prof profile.Profile, rotation string, now time.Time) (profile.Signer, time.Time, error) {
	if s.err != nil {
		return nil, time.Time{}, s.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := signerKind{prof.Name(), rotation}
	if made, ok := s.made[kind]; ok && (made.until.IsZero() || now.Before(made.until)) {
		return made.signer, made.until, made.err
	}
	var made madeSigner
	made.signer, made.until, made.err = m.signer(prof, s.secrets, rotation, now)
	if s.made == nil {
		s.made = map[signerKind]madeSigner{}
	}
	s.made[kind] = made
	return made.signer, made.until, made.err
}

// KeysChanged reads the signing keys of an environment anew, or of all if the id is zero.
func (m *Maker) KeysChanged(ctx context.Context, id godwit.EnvironmentID) error {
	return m.identities.changed(ctx, id)
}

// ReadKeysAgain reads keys that could not be read when they changed.
func (m *Maker) ReadKeysAgain(ctx context.Context) {
	for _, id := range m.identities.unread() {
		if err := m.identities.changed(ctx, id); err != nil {
			m.cfg.Log.Error("signing keys of an environment could not be read; its endpoints get nothing", "environment", id.String(), "error", err)
		}
	}
}
