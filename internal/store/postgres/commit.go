package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// batches stores the batches of the engine: accepted events, results of attempts, health and notices.
type batches struct {
	*database
	vacuum *vacuumer // told how many rows a commit left behind
	recent *recent   // told how chains of evidence have grown
	slot   int       // of this process in the table usage
}

// Commit stores a batch in one transaction and one round trip. It assumes the ordinary case: nothing of the batch is stored
// yet, the leases are held, every result's delivery is still claimed. The server checks the assumption and rolls back when it
// does not hold; then sendWithCare repeats the batch. Evidence costs another round trip: each item holds the hash of the
// previous one, which must be read first.
func (s *batches) Commit(ctx context.Context, b *store.Batch) (*store.Committed, error) {
	c := s.arrange(b)
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return nil, hotFailed("commit", err)
	}
	defer conn.Release()
	careful := c.seenBefore
	if !careful {
		err = c.sendAsIs(ctx, conn.Conn())
		careful = surprising(err)
	}
	for try := 0; careful && try < carefulTries; try++ {
		c = s.arrange(b)
		err = c.sendWithCare(ctx, conn.Conn())
		careful = surprising(err)
	}
	if err == nil {
		err = s.awaitReplicas(ctx, conn.Conn())
	}
	if sqlState(err) == stateConfigBehind {
		return &store.Committed{Behind: true}, nil
	}
	if errors.Is(err, errUnlinked) {
		return nil, fmt.Errorf("commit: %w", err) // a permanent error
	}
	if err != nil {
		return nil, hotFailed("commit", err)
	}
	if c.chains != nil {
		s.recent.grown(c.chains.Heads())
	}
	s.vacuum.note(len(c.finished) + len(c.waiting))
	return c.committed(), nil
}

// surprising reports whether the transaction was rolled back because an assumption of the fast path does not hold, or because the
// server chose it as the victim of a deadlock. Nothing of it is stored, so it can be repeated with care.
func surprising(err error) bool {
	switch sqlState(err) {
	case stateUniqueViolation, stateLeaseLost, stateClaimLost, stateFanoutMoved, stateDeadlock:
		return true
	}
	return false
}

// A commit is a batch, sorted by table.
type commit struct {
	batch *store.Batch
	slot  int // see batches

	plain      []newEvent // events of accepts without a record
	keyed      []newEvent // events of accepts with a record
	records    []keyedAccept
	doubles    map[int]int // accepts whose key occurs earlier in the batch, with the index of that one in records
	seenBefore bool        // the batch has an event that was stored long ago
	existing   map[[32]byte]*godwit.IdempotencyRecord
	parts      []*store.FanoutPart
	broadcasts []*store.BroadcastPart
	moved      []int // accepts left out because the cursor of their fan-out or broadcast is elsewhere

	finished  []*store.Result
	waiting   []*store.Result // still pending
	attempts  []*godwit.Attempt
	attempted *store.Tally // usage of the attempts; nil if there are no results
	dead      []*store.Result
	fenced    []int

	health  []godwit.Health
	changes []store.EndpointChange
	chains  *evidence.Chains // chains that the evidence is appended to; nil without evidence
}

func (s *batches) arrange(b *store.Batch) *commit {
	c := &commit{batch: b, slot: s.slot, health: b.Health, changes: b.Changes}
	c.arrangeAccepts()
	c.arrangeResults(nil)
	return c
}

// sendAsIs sends the batch under the assumptions of the ordinary case.
func (c *commit) sendAsIs(ctx context.Context, conn *pgx.Conn) error {
	if len(c.batch.Evidence) == 0 {
		return c.send(ctx, conn.PgConn(), "")
	}
	err := c.lockHeads(ctx, conn.PgConn(), begin)
	if err == nil {
		err = c.linkEvidence()
	}
	if err == nil {
		err = c.send(ctx, conn.PgConn(), `COMMIT`)
	}
	if err != nil {
		abandon(ctx, conn)
	}
	return err
}

// send runs the batch as one pipeline, followed by the command last if there is one.
func (c *commit) send(ctx context.Context, conn *pgconn.PgConn, last string) error {
	p := newPipeline(ctx, conn)
	c.addFanouts(p)
	c.addBroadcasts(p)
	c.addAccepts(p)
	c.addResults(p)
	c.addHealth(p)
	c.addChanges(p)
	c.addNotices(p)
	addUsageRows(p, c.usage(), c.batch.Now, c.slot)
	if c.chains != nil {
		addEvidence(p, c.chains.Items())
		addHeads(p, c.chains.Heads())
	}
	if last != "" {
		p.command(last)
	}
	return p.run()
}

func (c *commit) committed() *store.Committed {
	out := &store.Committed{Existing: make([]*godwit.IdempotencyRecord, len(c.batch.Accepts)), Moved: c.moved, Fenced: c.fenced}
	for _, k := range c.records {
		out.Existing[k.accept] = c.existing[k.record.ID]
	}
	for accept, first := range c.doubles {
		out.Existing[accept] = c.existing[c.records[first].record.ID]
		if out.Existing[accept] == nil {
			out.Existing[accept] = c.records[first].record
		}
	}
	slices.Sort(out.Fenced)
	return out
}

var healthColumns = []string{
	"endpoint_id uuid", "consecutive_failures int4", "consecutive_terminal int4", "accepted int8", "transient int8",
	"terminal int8", "avg_duration_ms float8", "last_reason text", "last_accepted_at timestamptz",
	"last_failure_at timestamptz", "hold_until timestamptz", "sunset_at timestamptz", "circuit_open_at timestamptz",
	"probe_at timestamptz", "updated_at timestamptz", "streak int4", "degraded_at timestamptz", "recent bytea",
}

var upsertHealth = prepared("health", insert("endpoint_health", healthColumns...)+
	` ON CONFLICT (endpoint_id) `+replace(healthColumns))

// addHealth writes whole rows. All nodes use the same order, so that commits do not deadlock.
func (c *commit) addHealth(p *pipeline) {
	if len(c.health) == 0 {
		return
	}
	rows := make([]*godwit.Health, len(c.health))
	for i := range c.health {
		rows[i] = &c.health[i]
	}
	slices.SortStableFunc(rows, func(a, b *godwit.Health) int { return bytes.Compare(a.EndpointID[:], b.EndpointID[:]) })
	slices.Reverse(rows) // the last one of an endpoint counts
	rows = slices.CompactFunc(rows, func(a, b *godwit.Health) bool { return a.EndpointID == b.EndpointID })
	a := p.begin()
	column(a, typeID, rows, func(h *godwit.Health) { a.id(h.EndpointID) })
	column(a, typeInt4, rows, func(h *godwit.Health) { a.int4(h.ConsecutiveFailures) })
	column(a, typeInt4, rows, func(h *godwit.Health) { a.int4(h.ConsecutiveTerminal) })
	column(a, typeInt8, rows, func(h *godwit.Health) { a.int8(h.Accepted) })
	column(a, typeInt8, rows, func(h *godwit.Health) { a.int8(h.Transient) })
	column(a, typeInt8, rows, func(h *godwit.Health) { a.int8(h.Terminal) })
	column(a, typeFloat, rows, func(h *godwit.Health) { a.float8(h.AvgDurationMS) })
	column(a, typeText, rows, func(h *godwit.Health) { a.text(string(h.LastReason)) })
	column(a, typeTime, rows, func(h *godwit.Health) { a.time(h.LastAcceptedAt) })
	column(a, typeTime, rows, func(h *godwit.Health) { a.time(h.LastFailureAt) })
	column(a, typeTime, rows, func(h *godwit.Health) { a.time(h.HoldUntil) })
	column(a, typeTime, rows, func(h *godwit.Health) { a.time(h.SunsetAt) })
	column(a, typeTime, rows, func(h *godwit.Health) { a.time(h.CircuitOpenAt) })
	column(a, typeTime, rows, func(h *godwit.Health) { a.time(h.ProbeAt) })
	column(a, typeTime, rows, func(h *godwit.Health) { a.time(h.UpdatedAt) })
	column(a, typeInt4, rows, func(h *godwit.Health) { a.int4(h.Streak) })
	column(a, typeTime, rows, func(h *godwit.Health) { a.time(h.DegradedAt) })
	column(a, typeBytes, rows, func(h *godwit.Health) { a.optionalBytes(encodeRecent(h.Recent)) })
	p.add(upsertHealth, nil)
}

// column writes one array parameter with an element for each row.
func column[T any](p *parameters, element uint32, rows []T, write func(T)) {
	p.array(element, len(rows))
	for i := range rows {
		write(rows[i])
	}
}

// rareColumn writes a column that is null in most rows. The array ends after the last value: a shorter array unnests to nulls.
func rareColumn[T any](p *parameters, element uint32, rows []T, has func(T) bool, write func(T)) {
	for len(rows) > 0 && !has(rows[len(rows)-1]) {
		rows = rows[:len(rows)-1]
	}
	p.array(element, len(rows))
	for i := range rows {
		if has(rows[i]) {
			write(rows[i])
		} else {
			p.null()
		}
	}
}

var (
	disableEndpoint = prepared("disable", `UPDATE endpoints
		SET status = 'disabled', status_reason = $2, status_at = $3, reenable_at = $4, updated_at = $3, version = version + 1
		WHERE id = $1 AND status = 'active'`)
	enableEndpoint = prepared("enable", `WITH enabled AS (UPDATE endpoints
			SET status = 'active', status_reason = '', status_at = $2, reenable_at = NULL, updated_at = $2, version = version + 1
			WHERE id = $1 AND status = 'disabled' AND reenable_at <= $2 RETURNING id)
		UPDATE endpoint_health SET `+clearedHealth+`, updated_at = $2 FROM enabled WHERE endpoint_id = enabled.id`)
	shortenRest = prepared("shorten_rest", `UPDATE endpoints
		SET reenable_at = $2, status_at = least(status_at, $3), updated_at = $3, version = version + 1
		WHERE id = $1 AND status = 'disabled' AND reenable_at > $2`)
	moveEndpoint = prepared("move", `UPDATE endpoints SET url = $3, updated_at = $4, version = version + 1
		WHERE id = $1 AND url = $2 AND status <> 'deleted'`)
)

// addChanges writes the changes in the order of endpoints; those of one endpoint stay in theirs.
func (c *commit) addChanges(p *pipeline) {
	changes := slices.Clone(c.changes)
	slices.SortStableFunc(changes, func(a, b store.EndpointChange) int { return bytes.Compare(a.EndpointID[:], b.EndpointID[:]) })
	for _, change := range changes {
		if change.Disable != "" {
			a := p.begin()
			a.scalarID(change.EndpointID)
			a.scalarText(change.Disable)
			a.scalarTime(c.batch.Now)
			a.optionalScalarTime(change.ReenableAt)
			p.add(disableEndpoint, nil)
		}
		if change.Enable {
			a := p.begin()
			a.scalarID(change.EndpointID)
			a.scalarTime(c.batch.Now)
			p.add(enableEndpoint, nil)
		}
		if !change.RestUntil.IsZero() {
			a := p.begin()
			a.scalarID(change.EndpointID)
			a.scalarTime(change.RestUntil)
			a.scalarTime(c.batch.Now)
			p.add(shortenRest, nil)
		}
		if change.MoveTo != "" {
			a := p.begin()
			a.scalarID(change.EndpointID)
			a.scalarText(change.MoveFrom)
			a.scalarText(change.MoveTo)
			a.scalarTime(c.batch.Now)
			p.add(moveEndpoint, nil)
		}
	}
}

var insertNotices = prepared("notices", insert("notices",
	"id uuid", "tenant_id uuid", "endpoint_id uuid", "delivery_id uuid", "event_id uuid", "kind text", "detail text",
	"link text", "created_at timestamptz", "acknowledged_at timestamptz", "acknowledged_by text")+` ON CONFLICT DO NOTHING`)

func (c *commit) addNotices(p *pipeline) {
	rows := c.batch.Notices
	if len(rows) == 0 {
		return
	}
	a := p.begin()
	column(a, typeID, rows, func(n godwit.Notice) { a.id(n.ID) })
	column(a, typeID, rows, func(n godwit.Notice) { a.id(n.TenantID) })
	column(a, typeID, rows, func(n godwit.Notice) { a.optionalID(n.EndpointID) })
	column(a, typeID, rows, func(n godwit.Notice) { a.optionalID(n.DeliveryID) })
	column(a, typeID, rows, func(n godwit.Notice) { a.optionalID(n.EventID) })
	column(a, typeText, rows, func(n godwit.Notice) { a.text(string(n.Kind)) })
	column(a, typeText, rows, func(n godwit.Notice) { a.text(n.Detail) })
	column(a, typeText, rows, func(n godwit.Notice) { a.text(n.Link) })
	column(a, typeTime, rows, func(n godwit.Notice) { a.time(n.CreatedAt) })
	column(a, typeTime, rows, func(n godwit.Notice) { a.time(n.AcknowledgedAt) })
	column(a, typeText, rows, func(n godwit.Notice) { a.text(n.AcknowledgedBy) })
	p.add(insertNotices, nil)
}
