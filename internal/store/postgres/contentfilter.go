package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// fenceContent finds a live node whose program does not know content filters. Without one, it keeps such programs from starting: the
// migration that added the filters says from then on that only programs of its own schema may run beside it.
const fenceContent = `WITH own AS (SELECT version, beside FROM schema_migrations WHERE name LIKE '%\_content\_filters'),
	old AS (SELECT n.name FROM nodes AS n, own WHERE n.schema_version BETWEEN 1 AND own.version - 1
		AND (n.lease_until > clock_timestamp() OR n.seen_at > clock_timestamp() - $1::interval)),
	fence AS (UPDATE schema_migrations AS m SET beside = own.version FROM own
		WHERE m.version = own.version AND own.beside < own.version AND NOT EXISTS (SELECT FROM old))
	SELECT EXISTS (SELECT FROM old)`

// allowContent refuses an endpoint with a content filter while a node of an older release is alive, which would ignore the filter.
func allowContent(ctx context.Context, q querier, e *godwit.Endpoint) error {
	if len(e.Content) == 0 {
		return nil
	}
	r, err := q.Query(ctx, fenceContent, store.NodeSilence)
	if err != nil {
		return err
	}
	older, err := pgx.CollectExactlyOneRow(r, pgx.RowTo[bool])
	if err == nil && older {
		return store.ErrOlderNodes
	}
	return err
}
