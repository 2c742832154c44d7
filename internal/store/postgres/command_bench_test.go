package postgres

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
)

// BenchmarkAdvance measures the cost of a step in batches of different sizes: a reservation and an outcome, each with its
// evidence; an observation, which is evidence only; and, for comparison, a bare insert of a row with the same key and id.
func BenchmarkAdvance(b *testing.B) {
	for _, kind := range []string{"bare", "observe", "reserve", "finish"} {
		for _, size := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("%s/%d", kind, size), func(b *testing.B) { benchAdvance(b, kind, size) })
		}
	}
}

func benchAdvance(b *testing.B, kind string, size int) {
	s := openAt(b, Options{HotConnections: 1})
	if _, err := s.pool.Exec(b.Context(), `CREATE TABLE bare (tenant text, key text, id text, PRIMARY KEY (tenant, key))`); err != nil {
		b.Fatal(err)
	}
	round := func() time.Duration {
		records := make([]*command.Record, size)
		steps, last := make([]*command.Step, size), make([]*command.Step, size)
		tenants, keys, ids := make([]string, size), make([]string, size), make([]string, size)
		for i := range records {
			r := benchRecord()
			records[i], tenants[i], keys[i], ids[i] = r, r.Tenant, r.Key, r.CommandID
			if steps[i] = benchStep(r, 0, evidence.Reserved); kind == "observe" {
				steps[i] = benchStep(r, 0, evidence.Observation)
			}
			done := *r
			done.Status, done.OutcomeRef, done.Outcome, done.Envelope, done.Version = command.Executed, "outcome:"+r.CommandID, make([]byte, 200), nil, 2
			last[i] = benchStep(&done, 1, evidence.ExecutedOK)
		}
		if kind == "finish" {
			applied(b, s, steps...)
			steps = last
		}
		started := time.Now()
		if kind == "bare" {
			_, err := s.pool.Exec(b.Context(), `INSERT INTO bare SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::text[])`, tenants, keys, ids)
			if err != nil {
				b.Fatal(err)
			}
		} else {
			applied(b, s, steps...)
		}
		return time.Since(started)
	}
	for range 5 { // warm up plans and caches
		round()
	}
	var spent time.Duration
	for b.Loop() {
		spent += round()
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*size)/1e3, "wall-µs/step")
	b.ReportMetric(0, "ns/op")
}

func benchRecord() *command.Record {
	r := reserved("ten_0199a2b0-0000-7000-8000-000000000000", fmt.Sprintf("%064x", rand.Text()), "cmd_"+rand.Text())
	r.Key = r.Key[:64]
	r.KeyVersion, r.Intent, r.Class = 1, command.Intent{Entity: "invoice", Action: "refund", Target: "INV-1"}, command.I1
	r.Actor, r.Principal, r.Owner, r.Try = "key_1", "key_1", "node-a", 1
	r.Fingerprint, r.Envelope, r.MAC = "sha256:"+r.Key, make([]byte, 400), make([]byte, 60)
	return r
}

func benchStep(r *command.Record, expect int64, kind string) *command.Step {
	entry := evidence.Entry{
		Type: kind, At: suiteTime, Decision: "first_seen", CommandID: r.CommandID, SubmittedID: r.CommandID, Key: r.Key,
		Command: "invoice.refund", Actor: r.Actor, Channel: "api", Fingerprint: r.Fingerprint,
	}
	step := &command.Step{Tenant: r.Tenant, Settle: func(command.Applied) (command.Change, error) {
		return command.Change{Evidence: []evidence.Entry{entry}}, nil
	}}
	if kind != evidence.Observation {
		step.Key, step.Expect = r.Key, expect
		step.Settle = func(command.Applied) (command.Change, error) {
			return command.Change{Record: r, Evidence: []evidence.Entry{entry}}, nil
		}
	}
	return step
}
