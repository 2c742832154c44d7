package redisstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/godwit-hq/godwit/receiver"
)

type txKey struct{}

// Queue adds a command that Redis runs in the step that completes the key of the handler with this context. It reports false,
// and the command is not run, if the handler is not transactional or has returned. Arguments are those of go-redis.
func Queue(ctx context.Context, command ...any) bool {
	t, ok := ctx.Value(txKey{}).(*transaction)
	if !ok || len(command) == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.commands = append(append(t.commands, len(command)), command...)
	return true
}

type transaction struct {
	store *Store
	hold  receiver.Hold

	mu       sync.Mutex
	commands []any // each preceded by its length
	ended    bool
}

// Begin implements [receiver.Transactor].
func (s *Store) Begin(ctx context.Context, h receiver.Hold) (receiver.Tx, error) {
	n, err := holdsScript.Run(ctx, s.client, s.key(h.Scope), h.Token).Int()
	switch {
	case err != nil:
		return nil, fmt.Errorf("begin: %w", err)
	case n == 0:
		return nil, fmt.Errorf("begin: %w", receiver.ErrLeaseLost)
	}
	return &transaction{store: s, hold: h}, nil
}

// Context implements [receiver.Tx].
func (t *transaction) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, txKey{}, t)
}

// Complete implements [receiver.Tx].
func (t *transaction) Complete(ctx context.Context, c receiver.Completion) (bool, error) {
	return t.store.complete(ctx, t.hold, c, t.end())
}

// Rollback implements [receiver.Tx]: nothing has been done yet.
func (t *transaction) Rollback(context.Context) error {
	t.end()
	return nil
}

// end accepts no more commands and returns those that were queued.
func (t *transaction) end() []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	return t.commands
}
