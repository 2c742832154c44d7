package sqlite

import (
	"testing"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
)

// REPLACE removes a conflicting row without firing the delete trigger.
func TestEvidenceIsNotReplaced(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{Exclusive: true})
	step := &command.Step{Tenant: "t", Settle: func(command.Applied) (command.Change, error) {
		return command.Change{Evidence: []evidence.Entry{{Type: evidence.Observation, At: noon}}}, nil
	}}
	if _, err := s.Advance(t.Context(), noon, []*command.Step{step}); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"INSERT OR REPLACE", "REPLACE", "INSERT"} {
		err := s.write(t.Context(), "tamper", func(c *conn) error {
			return c.script(verb + " INTO evidence_items VALUES ('t', 1, '', '', '', '', x'00')")
		})
		if err == nil {
			t.Errorf("%s took the place of an item", verb)
		}
	}
	if items, err := s.Evidence(t.Context(), command.EvidenceQuery{Tenant: "t"}); err != nil || len(items) != 1 {
		t.Errorf("evidence is %+v, %v", items, err)
	}
}

// If the database refuses a record, the whole batch fails, and the store keeps working.
func TestAdvanceAfterAFailure(t *testing.T) {
	s := openAt(t, t.TempDir(), Options{Exclusive: true})
	step := func(key string, status command.Status) *command.Step {
		return &command.Step{Tenant: "t", Key: key, Settle: func(command.Applied) (command.Change, error) {
			return command.Change{
				Record:   &command.Record{Tenant: "t", Key: key, CommandID: "cmd_" + key, Status: status, CreatedAt: noon, UpdatedAt: noon, Version: 1},
				Evidence: []evidence.Entry{{Type: evidence.Reserved, At: noon}},
			}, nil
		}}
	}
	if _, err := s.Advance(t.Context(), noon, []*command.Step{step("a", command.InProgress), step("b", "done")}); err == nil {
		t.Fatal("a status that there is not was stored")
	}
	if r, err := s.Find(t.Context(), "t", "a"); err != nil || r != nil {
		t.Fatalf("half a batch is there: %+v, %v", r, err)
	}
	results, err := s.Advance(t.Context(), noon, []*command.Step{step("a", command.InProgress)})
	if err != nil || results[0].Refused {
		t.Fatalf("the same step again: %+v, %v", results, err)
	}
	if head, err := s.EvidenceHead(t.Context(), "t"); err != nil || head.Seq != 1 {
		t.Errorf("head is %+v, %v", head, err)
	}
	stray := step("a", command.Executed)
	stray.Key, stray.Expect = "c", 0
	if results, err := s.Advance(t.Context(), noon, []*command.Step{stray}); err != nil || results[0].Err == nil {
		t.Errorf("a record under another key than its step's: %+v, %v", results, err)
	}
}
