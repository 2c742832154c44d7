package sqlite

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// The statements that run against a large backlog use an index and do not sort.
func TestPlans(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{Exclusive: true})
	for name, c := range map[string]struct {
		query string
		want  []string
	}{
		"claim":         {dueNow, []string{"SEARCH d USING INDEX deliveries_due (endpoint_id=? AND due_at<?)", "SEARCH e USING INDEX events_id (tenant_id=? AND id=?)"}},
		"next due":      {dueNext, []string{"SEARCH deliveries USING COVERING INDEX deliveries_due (endpoint_id=?)"}},
		"endpoints due": {waiting, []string{"SEARCH d USING COVERING INDEX deliveries_due (endpoint_id>?)", "SEARCH d USING COVERING INDEX deliveries_due (endpoint_id=?)"}},
		"handed over":   {handedOver, []string{"SCAN h", "SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"}},
		"record result": {updateClaimed, []string{"SEARCH deliveries USING INDEX deliveries_id (tenant_id=? AND id=?)"}},
		"list of a tenant": {
			filtered(&store.DeliveryFilter{}, store.Page{}, "INDEXED BY deliveries_id").text(),
			[]string{"SEARCH d USING INDEX deliveries_id (tenant_id=?)"},
		},
		"list of an endpoint": {
			filtered(&store.DeliveryFilter{EndpointID: godwit.EndpointID{1}}, store.Page{After: [16]byte{1}}, "INDEXED BY deliveries_endpoint").text(),
			[]string{"SEARCH d USING INDEX deliveries_endpoint (endpoint_id=? AND id<?)"},
		},
		"list of the dead": {
			filtered(&store.DeliveryFilter{Status: godwit.DeliveryTerminal}, store.Page{After: [16]byte{1}}, "INDEXED BY deliveries_ended").text(),
			[]string{"SEARCH d USING INDEX deliveries_ended (tenant_id=? AND status=? AND id<?)"},
		},
		"list of the dead of an endpoint": {
			filtered(&store.DeliveryFilter{Status: godwit.DeliveryTerminal, EndpointID: godwit.EndpointID{1}}, store.Page{After: [16]byte{1}}, "INDEXED BY deliveries_ended").text(),
			[]string{"SEARCH d USING INDEX deliveries_ended (tenant_id=? AND status=? AND id<?)"},
		},
		"list of the pending": {
			filtered(&store.DeliveryFilter{Status: godwit.DeliveryPending}, store.Page{After: [16]byte{1}}, waits).text(),
			[]string{"SEARCH d USING INDEX deliveries_waiting (tenant_id=? AND id<?)"},
		},
		"tenants that wait": {tenantsWaiting, []string{"SEARCH d USING COVERING INDEX deliveries_waiting (tenant_id>?)"}},
		"few pending": {
			amongPending(&store.DeliveryFilter{Status: godwit.DeliveryPending}, store.Page{After: [16]byte{1}}).text(),
			[]string{"SEARCH d USING INTEGER PRIMARY KEY (rowid=?)"},
		},
		"sweep records":     {sweepRecords, []string{"SEARCH idempotency_records USING INDEX idempotency_records_expiry (expires_at<?)"}},
		"sweep attempts":    {oldAttempts, []string{"SEARCH attempts USING PRIMARY KEY"}},
		"record of a key":   {underKey, []string{"USING INDEX sqlite_autoindex_command_records_1 (tenant=? AND idempotency_key=?)"}},
		"lost commands":     {lostCommands, []string{"SEARCH command_records USING INDEX command_records_lease (lease_until<?)"}},
		"sweep expired":     {sweepExpired, []string{"USING INDEX command_records_expiry (ttl_expires_at>? AND ttl_expires_at<?)"}},
		"sweep unconfirmed": {sweepUnconfirmed, []string{"USING COVERING INDEX command_records_unconfirmed (lease_until<?)"}},
		"evidence": {
			evidenceText(&command.EvidenceQuery{}), []string{"USING INDEX sqlite_autoindex_evidence_items_1 (tenant=? AND seq>?)"},
		},
		"evidence of a key": {
			evidenceText(&command.EvidenceQuery{Key: "k"}), []string{"USING INDEX evidence_items_key (tenant=? AND key=? AND seq>?)"},
		},
		"evidence of a target": {
			evidenceText(&command.EvidenceQuery{Target: "t"}), []string{"USING INDEX evidence_items_target (tenant=? AND target=? AND seq>?)"},
		},
		"evidence of a command": {
			evidenceText(&command.EvidenceQuery{CommandID: "c"}), []string{
				"USING INDEX evidence_items_command (tenant=? AND command_id=? AND seq>?)",
				"USING INDEX evidence_items_submitted (tenant=? AND submitted_id=? AND seq>?)",
			},
		},
	} {
		plan := explain(t, s, c.query)
		for _, want := range c.want {
			if !strings.Contains(plan, want) {
				t.Errorf("%s: plan is\n%s\nwithout %q", name, plan, want)
			}
		}
		if name != "few pending" && strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s sorts:\n%s", name, plan)
		}
	}
}

func evidenceText(q *command.EvidenceQuery) string {
	text, _ := evidenceQuery(q)
	return text
}

func explain(t *testing.T, s *Store, query string) string {
	t.Helper()
	var plan strings.Builder
	err := s.read(t.Context(), "explain", func(c *conn) error {
		return c.each(t.Context(), "EXPLAIN QUERY PLAN "+query, make([]driver.Value, strings.Count(query, "?")), func(r *rows) error {
			fmt.Fprintln(&plan, r.text(3))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// The WAL is copied in portions long before it starts over, so that the copy for which commits wait has little to do.
func TestCheckpointCopiesInPortions(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{})
	s.checkpointer.frames, s.checkpointer.portion = 1_000_000, 100
	if err := s.startServing(t.Context()); err != nil { // the checkpointer itself does not run
		t.Fatal(err)
	}
	for commits := range 40 {
		b, _ := event(20000)
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := s.checkpoint(false); err != nil {
			t.Fatal(err)
		}
		frames, copied, err := walStep(s.keeper, "NOOP")
		if err != nil || frames-copied >= 100 || frames < 100 && copied > 0 {
			t.Errorf("after %d commits %d of %d frames are copied, %v", commits+1, copied, frames, err)
		}
		if copied > 0 {
			return
		}
	}
	t.Error("nothing was copied")
}

// The WAL restarts even if the writer never pauses.
func TestCheckpointKeepsWALShort(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{})
	s.checkpointer.frames = 100
	if err := s.startServing(t.Context()); err != nil { // the checkpointer itself does not run
		t.Fatal(err)
	}
	for range 40 {
		for range 10 {
			b, _ := event(20000)
			if _, err := s.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.checkpoint(false); err != nil {
			t.Fatal(err)
		}
	}
	frames, _, err := walStep(s.keeper, "NOOP")
	if err != nil || frames > 300 {
		t.Errorf("the WAL has %d frames after 400 commits of 6 and more, %v", frames, err)
	}
	if _, err := s.ListEvents(t.Context(), store.EventFilter{TenantID: godwit.TenantID{1}}, store.Page{Limit: 1}); err != nil {
		t.Error(err)
	}
}
