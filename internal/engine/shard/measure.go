package shard

import (
	"log/slog"
	"time"
)

// A Move is a way in which a node gets or loses shards.
type Move string

// The moves.
const (
	MoveTaken   Move = "taken"
	MoveGivenUp Move = "given_up" // to balance the nodes, or because this one stops
	MoveLost    Move = "lost"     // to another node, while this one was silent
)

// A Recorder measures changes of ownership. Its methods must not block.
type Recorder interface {
	// Moved counts shards.
	Moved(m Move, shards int)
	// HandedOver measures how long a shard had no owner until this node served it.
	HandedOver(took time.Duration)
}

type silent struct{}

func (silent) Moved(Move, int)          {}
func (silent) HandedOver(time.Duration) {}

// storeTime estimates the store's time by that of the last beat. Called with the keeper locked.
func (k *Keeper) storeTime() time.Time {
	return k.cluster.Now.Add(k.cfg.Clock.Steady() - k.clusterAt)
}

// handedOver returns how long the shard had no owner. A shard that was free before this node began counts from then, since no
// node may have run before. Called with the keeper locked.
func (k *Keeper) handedOver(h *holding) (took time.Duration, known bool) {
	since := h.lease.FreeSince
	if since.IsZero() || k.cluster == nil {
		return 0, false
	}
	if k.began.After(since) {
		since = k.began
	}
	return max(k.storeTime().Sub(since), 0), true
}

// A trouble is something that fails again and again. It is logged once, and once more when it is over. One goroutine uses it.
type trouble struct{ lasts bool }

func (t *trouble) note(log *slog.Logger, failed, mended string, err error) {
	switch {
	case err != nil && !t.lasts:
		log.Warn(failed+"; it is tried again", "error", err)
	case err == nil && t.lasts:
		log.Info(mended)
	}
	t.lasts = err != nil
}
