package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// clusterReader reads the time of a store.
type clusterReader interface {
	Cluster(ctx context.Context) (*godwit.Cluster, error)
}

// clockReadings is how often the time of the database is read at the start. The quickest answer is the most exact one; the first
// may include the time to connect.
const clockReadings = 3

// openClock returns the clock for a store: on PostgreSQL a *clock.Synced with the database's time, since several nodes share the
// database and the times in it.
func openClock(ctx context.Context, s *config.Storage, st clusterReader, log *slog.Logger) (clock.Clock, error) {
	machine := clock.Real{}
	if !s.Postgres() {
		return machine, nil
	}
	var at time.Time
	var before, after time.Duration
	for i := range clockReadings {
		sent := machine.Steady()
		c, err := st.Cluster(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the time of the database: %w", err)
		}
		if answered := machine.Steady(); i == 0 || answered-sent < after-before {
			at, before, after = c.Now, sent, answered
		}
	}
	synced := clock.NewSynced(machine, log)
	synced.Observe(at, before, after)
	return synced, nil
}
