package engine_test

import (
	"context"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A fold ends although the server commits all the time, and the history is swept after it.
func TestFoldEndsUnderLoad(t *testing.T) {
	swept := make(chan struct{}, 1)
	s := &tampered{aged: func() {
		select {
		case swept <- struct{}{}:
		default:
		}
	}}
	s.folded = func() {
		e := &godwit.Event{ID: godwit.NewEventID(start), TenantID: godwit.NewTenantID(start), Type: "load", Key: "k", Body: []byte("{}"), CreatedAt: start}
		if _, err := s.Store.Commit(context.Background(), &store.Batch{Now: start, Accepts: []store.Accept{{Events: []store.NewEvent{{Event: e}}}}}); err != nil {
			t.Error(err)
		}
	}
	srv := boot(t, s, nil, nil)
	srv.Publish("first", `{}`)
	await(t, "the sweep of the history", swept)
	must(t, srv.Stop())
}
