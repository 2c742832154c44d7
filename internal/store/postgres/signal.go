package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// signalChannel is the channel of NOTIFY that all nodes of a database share.
const signalChannel = "godwit"

// signals passes messages between nodes by LISTEN and NOTIFY.
type signals struct{ *database }

// Signal sends messages in a transaction of its own. NOTIFY takes a lock of the whole server instance until its transaction has
// committed; this one has nothing to write, so it holds the lock only for a moment and waits for no disk.
func (s *signals) Signal(ctx context.Context, messages []string) error {
	_, err := s.pool.Exec(ctx, `SELECT pg_notify('`+signalChannel+`', m) FROM unnest($1::text[]) AS m`, messages)
	return failed("signal", err)
}

// Pauses between attempts to listen.
const (
	minListenPause = 100 * time.Millisecond
	maxListenPause = 3 * time.Second
)

// Listen receives on a connection of its own, which it replaces when it is lost.
func (s *signals) Listen(ctx context.Context, received func(message string), lost func()) {
	for wait := minListenPause; ctx.Err() == nil; wait = min(2*wait, maxListenPause) {
		if s.listen(ctx, received, func() { wait = minListenPause; lost() }) != nil {
			_ = pause(ctx, wait/2+rand.N(wait/2))
		}
	}
}

func (s *signals) listen(ctx context.Context, received func(message string), ready func()) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	if _, err := conn.Exec(ctx, `LISTEN `+signalChannel); err != nil {
		return err
	}
	ready()
	for {
		if err := s.receive(ctx, conn, received); err != nil {
			return err
		}
	}
}

// silence is how long the connection may be silent before it is checked: a connection that the network has dropped, or whose server is no longer the
// primary, gives no error by itself.
const silence = 5 * time.Second

func (s *signals) receive(ctx context.Context, conn *pgx.Conn, received func(message string)) error {
	waiting, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	n, err := conn.WaitForNotification(waiting)
	switch {
	case err == nil:
		received(n.Payload)
		return nil
	case ctx.Err() == nil && waiting.Err() != nil && !conn.IsClosed():
		checking, cancel := context.WithTimeout(ctx, silence)
		defer cancel()
		var readOnly bool
		err := conn.QueryRow(checking, `SELECT current_setting('transaction_read_only')::bool`).Scan(&readOnly) // also receives; the next call returns what came
		if err == nil && readOnly {
			return errFenced
		}
		return err
	}
	return err
}

// errFenced reports a server that takes no writes any more: nodes send their signals to another one.
var errFenced = errors.New("the server is read-only")
