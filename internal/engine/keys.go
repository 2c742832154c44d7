package engine

import "sync"

// inProgress holds the idempotency keys, with fingerprints, of submissions in progress.
type inProgress struct {
	mu  sync.Mutex
	ids map[[32]byte][32]byte
}

// enter takes the key until leave; it returns nil if the key was free.
func (p *inProgress) enter(id, fingerprint [32]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held, ok := p.ids[id]; ok {
		if held != fingerprint {
			return ErrKeyReused
		}
		return ErrInProgress
	}
	p.ids[id] = fingerprint
	return nil
}

func (p *inProgress) leave(id [32]byte) {
	p.mu.Lock()
	delete(p.ids, id)
	p.mu.Unlock()
}
