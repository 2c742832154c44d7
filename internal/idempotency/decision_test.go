package idempotency_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/godwit-hq/godwit/internal/idempotency"
)

func TestDecisionsAreToldBeforeTheyAreAnswered(t *testing.T) {
	var told []idempotency.Decision
	var fails error
	f := newFixture(t, func(c *idempotency.Config) {
		c.Decided = func(_ context.Context, d idempotency.Decision) error {
			told = append(told, d)
			return fails
		}
	})
	post := func(body string) int {
		return f.post(body, "Idempotency-Key", key1, "Test-Channel", "native").status
	}
	// If the evidence cannot be stored, the request does not run and its key is free.
	fails = errors.New("evidence is full")
	if status := post(`1`); status != 500 {
		t.Errorf("answered %d", status)
	}
	f.wantCalls(0)
	fails = nil
	statuses := []int{post(`1`), post(`1`), post(`2`)}
	if !slices.Equal(statuses, []int{201, 201, 422}) {
		t.Errorf("answered %v", statuses)
	}
	f.wantCalls(1)
	var outcomes []idempotency.Outcome
	for _, d := range told {
		outcomes = append(outcomes, d.Outcome)
		if d.Channel != "native" || d.Route != "POST /things" || d.ID != told[0].ID || !d.At.Equal(start) || d.InProgress {
			t.Errorf("told %+v", d)
		}
	}
	if !slices.Equal(outcomes, []idempotency.Outcome{idempotency.FirstSeen, idempotency.FirstSeen, idempotency.DuplicateReplayed, idempotency.ConflictRejected}) {
		t.Errorf("told %v", outcomes)
	}
	if last := told[3]; last.Stored != told[1].Fingerprint || last.Fingerprint == last.Stored {
		t.Errorf("told %+v", last)
	}
	// Repeats are not answered without evidence either.
	fails = errors.New("evidence is full")
	if status := post(`1`); status != 500 {
		t.Errorf("answered %d", status)
	}
	// Requests other than management leave no evidence.
	n := len(told)
	if r := f.post(`3`, "Idempotency-Key", key2); r.status != 201 || len(told) != n {
		t.Errorf("answered %d, told %d", r.status, len(told)-n)
	}
}
