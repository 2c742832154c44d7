package postgresstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/receiver"
)

type txKey struct{}

// Tx is the transaction that completes the key, or ends the job, of the handler with this context; nil if the handler is not
// transactional. Do not commit it or roll it back.
func Tx(ctx context.Context) pgx.Tx {
	tx, _ := ctx.Value(txKey{}).(pgx.Tx)
	return tx
}

type transaction struct{ tx pgx.Tx }

// Begin implements [receiver.Transactor].
func (s *Store) Begin(ctx context.Context, h receiver.Hold) (receiver.Tx, error) {
	tx, err := s.db.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	return &keyTx{transaction{tx}, h}, nil
}

// BeginJob implements [receiver.JobTransactor].
func (s *Store) BeginJob(ctx context.Context, j receiver.ClaimedJob) (receiver.JobTx, error) {
	tx, err := s.db.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	return &jobTx{transaction{tx}, j}, nil
}

// Context implements [receiver.Tx].
func (t *transaction) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, txKey{}, t.tx)
}

// Rollback implements [receiver.Tx].
func (t *transaction) Rollback(ctx context.Context) error {
	if err := t.tx.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

// finish commits if the statement changed its row; otherwise another holder has taken over. The row is locked only from here to
// the commit.
func (t *transaction) finish(ctx context.Context, statement string, args ...any) (bool, error) {
	tag, err := t.tx.Exec(ctx, statement, args...)
	if err != nil || tag.RowsAffected() == 0 {
		return false, errors.Join(err, t.Rollback(ctx))
	}
	if err := t.tx.Commit(ctx); err != nil {
		return false, fmt.Errorf("commit: %w", err)
	}
	return true, nil
}

type keyTx struct {
	transaction
	hold receiver.Hold
}

// Complete implements [receiver.Tx].
func (t *keyTx) Complete(ctx context.Context, c receiver.Completion) (bool, error) {
	args, err := completeArgs(t.hold, c)
	if err != nil {
		return false, errors.Join(fmt.Errorf("complete key: %w", err), t.Rollback(ctx))
	}
	return t.finish(ctx, completeKey, args...)
}

type jobTx struct {
	transaction
	job receiver.ClaimedJob
}

// Settle implements [receiver.JobTx].
func (t *jobTx) Settle(ctx context.Context, s receiver.Settlement) (bool, error) {
	return t.finish(ctx, settleJob, settleArgs(t.job, s)...)
}
