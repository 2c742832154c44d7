package evidence_test

import (
	"fmt"
	"testing"

	"github.com/godwit-hq/godwit/evidence"
)

func TestSummaryTellsWhatEachCallerGot(t *testing.T) {
	var s evidence.Summary
	head := evidence.Head{}
	add := func(e evidence.Entry) {
		e.At = noon
		it := link(t, head, e)
		head = it.Head()
		s.Add(&it)
	}
	first := func(kind, status string, executed bool) evidence.Entry {
		return evidence.Entry{Type: kind, Decision: "first_seen", Executed: executed, CommandID: "cmd_1", SubmittedID: "cmd_1", Key: "k1",
			Command: "invoice.refund", Actor: "anna", Channel: "http", OutcomeStatus: status}
	}
	repeat := func(n int, status string) evidence.Entry {
		return evidence.Entry{Type: evidence.Observation, Decision: "duplicate_replayed", CommandID: "cmd_1", SubmittedID: fmt.Sprintf("cmd_1%02d", n),
			Key: "k1", OutcomeStatus: status, OutcomeRef: "out_1"}
	}
	add(first(evidence.Reserved, "in_progress", false))
	add(repeat(0, "in_progress"))
	add(evidence.Entry{Type: evidence.Confirmed, CommandID: "cmd_1", SubmittedID: "cmd_1", Key: "k1", Actor: "bert", OutcomeStatus: "in_progress"})
	add(evidence.Entry{Type: evidence.Recovered, CommandID: "cmd_1", SubmittedID: "cmd_1", Key: "k1"})
	done := first(evidence.ExecutedOK, "executed", true)
	done.OutcomeRef, done.OutcomeDigest, done.Channel = "out_1", "sha256:d", ""
	add(done)
	for n := 1; n <= 20; n++ {
		add(repeat(n, "executed"))
	}
	add(evidence.Entry{Type: evidence.RejectedTy, Decision: "conflict_rejected", CommandID: "cmd_1", SubmittedID: "cmd_x", Key: "k1", Reason: "idempotency_conflict"})
	add(evidence.Entry{Type: evidence.RejectedTy, SubmittedID: "cmd_y", Key: "k1", Reason: "rate_limited"})
	add(evidence.Entry{Type: evidence.RejectedTy, SubmittedID: "cmd_z", Reason: "unknown_command"}) // no key
	add(evidence.Entry{Type: evidence.Delivered, CommandID: "cmd_1", Key: "k1", EventID: "evt_1", ResponseStatus: 200})
	add(evidence.Entry{Type: evidence.Dead, CommandID: "cmd_1", Key: "k1", EventID: "evt_2"})
	add(evidence.Entry{Type: evidence.Compensated, Executed: true, CommandID: "cmd_1", SubmittedID: "cmd_1", Key: "k1"})
	add(evidence.Entry{Type: evidence.ExecutedOK, Decision: "first_seen", Executed: true, CommandID: "cmd_5", PreviousID: "cmd_1", Key: "k1"})
	add(evidence.Entry{Type: evidence.FailedType, Decision: "first_seen", Executed: true, CommandID: "cmd_6", Key: "k2"})

	all := s.Keys()
	if len(all) != 2 || all[0].Key != "k1" || all[1].Key != "k2" {
		t.Fatalf("keys: %+v", all)
	}
	k, ok := s.Key("k1")
	if !ok || k.Executions != 2 || k.Replays != 21 || k.Conflicts != 1 || k.Refusals != 1 || k.Delivered != 1 || k.Dead != 1 || k.Command != "invoice.refund" {
		t.Errorf("k1: %+v", k)
	}
	if fmt.Sprint(k.Holders) != "[cmd_1 cmd_5]" || len(k.Answers) != 25 {
		t.Fatalf("holders %v, %d answers", k.Holders, len(k.Answers))
	}
	a := k.Answers[0]
	if a.Status != "compensated" || !a.Executed || a.Actor != "anna" || a.Channel != "http" || a.Decision != "first_seen" {
		t.Errorf("first answer: %+v", a)
	}
	if a := k.Answers[1]; a.Status != "in_progress" || a.Executed || a.SubmittedID != "cmd_100" {
		t.Errorf("answer while in progress: %+v", a)
	}
	for _, a := range k.Answers[2:22] {
		if a.Status != "executed" || a.OutcomeRef != "out_1" || a.Executed || a.Decision != "duplicate_replayed" {
			t.Errorf("replay: %+v", a)
		}
	}
	if a := k.Answers[22]; a.Status != "rejected" || a.Reason != "idempotency_conflict" || a.SubmittedID != "cmd_x" {
		t.Errorf("conflict: %+v", a)
	}
	if a := k.Answers[23]; a.Status != "rejected" || a.Reason != "rate_limited" {
		t.Errorf("refusal: %+v", a)
	}
	if k2 := all[1]; k2.Executions != 1 || k2.Answers[0].Status != "failed" || k2.Answers[0].SubmittedID != "cmd_6" {
		t.Errorf("k2: %+v", k2)
	}
	if _, ok := s.Key("k3"); ok {
		t.Error("a key that never was")
	}
}

// Two executions under one holder would be a fault of the executor; an auditor has to see it.
func TestSummaryShowsACommandExecutedTwice(t *testing.T) {
	var s evidence.Summary
	for seq := range int64(2) {
		s.Add(&evidence.Item{Seq: seq + 1, Entry: evidence.Entry{Type: evidence.ExecutedOK, Decision: "first_seen", Executed: true, CommandID: "cmd_1", Key: "k"}})
	}
	if k, _ := s.Key("k"); k.Executions != 2 {
		t.Errorf("%d executions", k.Executions)
	}
}
