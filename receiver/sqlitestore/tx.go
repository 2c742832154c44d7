package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/godwit-hq/godwit/receiver"
)

type txKey struct{}

// Tx is the transaction that completes the key, or ends the job, of the handler with this context; nil if the handler is not
// transactional. Do not commit it or roll it back.
func Tx(ctx context.Context) *sql.Tx {
	tx, _ := ctx.Value(txKey{}).(*sql.Tx)
	return tx
}

// transaction has the turn until it ends or its context ends, which rolls it back: a handler that does not return must not
// block all writers.
type transaction struct {
	tx    *sql.Tx
	free  func() // gives the turn back, once
	hold  receiver.Hold
	job   receiver.ClaimedJob
	ended bool
}

// begin takes the write lock with its first statement, which also checks that the holder still has the key.
func (s *Store) begin(ctx context.Context, t *transaction, fence string, args ...any) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	unlock := sync.OnceFunc(s.unlock)
	stop := context.AfterFunc(ctx, unlock)
	t.free = func() { stop(); unlock() }
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		t.free()
		return fmt.Errorf("begin: %w", err)
	}
	t.tx = tx
	n, err := changed(tx.ExecContext(ctx, fence, args...))
	if err == nil && n == 0 {
		err = receiver.ErrLeaseLost
	}
	if err != nil {
		return errors.Join(fmt.Errorf("begin: %w", err), t.Rollback(ctx))
	}
	return nil
}

// Begin implements [receiver.Transactor].
func (s *Store) Begin(ctx context.Context, h receiver.Hold) (receiver.Tx, error) {
	t := &keyTx{transaction{hold: h}}
	err := s.begin(ctx, &t.transaction, `UPDATE webhook_receipts SET token = token WHERE scope = ? AND token = ? AND status IS NULL`,
		h.Scope.String(), h.Token)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// BeginJob implements [receiver.JobTransactor].
func (s *Store) BeginJob(ctx context.Context, j receiver.ClaimedJob) (receiver.JobTx, error) {
	t := &jobTx{transaction{job: j}}
	err := s.begin(ctx, &t.transaction, `UPDATE webhook_inbox SET token = token WHERE id = ? AND token = ? AND state = 'claimed'`, j.ID, j.Token)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Context implements [receiver.Tx].
func (t *transaction) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, txKey{}, t.tx)
}

// Rollback implements [receiver.Tx].
func (t *transaction) Rollback(context.Context) error {
	if t.ended {
		return nil
	}
	t.ended = true
	defer t.free()
	if err := t.tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) { // its context may have ended it
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

// finish commits if the statement changed its row.
func (t *transaction) finish(ctx context.Context, statement string, args ...any) (bool, error) {
	n, err := changed(t.tx.ExecContext(ctx, statement, args...))
	if err != nil || n == 0 {
		return false, errors.Join(err, t.Rollback(ctx))
	}
	t.ended = true
	defer t.free()
	if err := t.tx.Commit(); err != nil {
		return false, fmt.Errorf("commit: %w", err)
	}
	return true, nil
}

type keyTx struct{ transaction }

// Complete implements [receiver.Tx].
func (t *keyTx) Complete(ctx context.Context, c receiver.Completion) (bool, error) {
	args, err := completeArgs(t.hold, c)
	if err != nil {
		return false, errors.Join(fmt.Errorf("complete key: %w", err), t.Rollback(ctx))
	}
	return t.finish(ctx, completeKey, args...)
}

type jobTx struct{ transaction }

// Settle implements [receiver.JobTx].
func (t *jobTx) Settle(ctx context.Context, s receiver.Settlement) (bool, error) {
	return t.finish(ctx, settleJob, settleArgs(t.job, s)...)
}
