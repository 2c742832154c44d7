package source

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// stuck is a store that does not answer.
type stuck struct {
	store.Sources
	bounded bool
}

func (s *stuck) ReceivedAt(ctx context.Context, _ godwit.SourceID, _ time.Time) error {
	_, s.bounded = ctx.Deadline()
	return context.DeadlineExceeded
}

// The answer of a request waits for the note of its receipt, so that has a bound, also if the client has gone.
func TestReceiptIsBounded(t *testing.T) {
	st := &stuck{}
	s := &Sources{cfg: Config{Store: st, Log: slog.New(slog.DiscardHandler), Now: time.Now}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Received(ctx, &godwit.Source{ID: godwit.NewSourceID(time.Now())})
	if !st.bounded {
		t.Error("the write has no bound")
	}
}
