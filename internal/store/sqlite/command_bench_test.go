//go:build unix

package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
)

// BenchmarkAdvance measures the cost of a step, compared with a bare insert and lookup of a row by key: reserve is a first
// submission, finish its outcome, observe the evidence of a repeat.
func BenchmarkAdvance(b *testing.B) {
	for _, kind := range []string{"insert", "reserve", "finish", "observe"} {
		for _, size := range []int{1, 16, 100} {
			b.Run(fmt.Sprintf("%s/batch=%d", kind, size), func(b *testing.B) { benchmarkAdvance(b, kind, size) })
		}
	}
}

func benchmarkAdvance(b *testing.B, kind string, size int) {
	l := newLoad(b, 1)
	if err := l.s.write(b.Context(), "make table", func(c *conn) error {
		return c.script("CREATE TABLE bare (tenant TEXT NOT NULL, key TEXT NOT NULL, value BLOB, PRIMARY KEY (tenant, key)) STRICT")
	}); err != nil {
		b.Fatal(err)
	}
	var used time.Duration
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		records := make([]command.Record, size)
		for i := range records {
			n++
			l.now = l.now.Add(50 * time.Microsecond)
			records[i] = benchRecord(l, n)
		}
		if kind == "finish" {
			l.advance(records, 0, evidence.Reserved)
			for i := range records {
				r := &records[i]
				r.Status, r.OutcomeRef, r.Outcome, r.Envelope = command.Executed, "outcome:"+r.CommandID, l.body[:300], nil
				r.Version, r.LeaseUntil, r.Owner = 2, time.Time{}, ""
			}
		}
		before := processor()
		b.StartTimer()
		switch kind {
		case "insert":
			l.insert(records)
		case "reserve":
			l.advance(records, 0, evidence.Reserved)
		case "finish":
			l.advance(records, 1, evidence.ExecutedOK)
		case "observe":
			l.advance(records, -1, evidence.Observation)
		}
		used += processor() - before
	}
	rows := float64(b.N * size)
	b.ReportMetric(float64(used.Nanoseconds())/1000/rows, "cpu-µs/row")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1000/rows, "µs/row")
}

func benchRecord(l *load, n int) command.Record {
	id := newIDAt[[16]byte](l.now)
	return command.Record{
		Tenant: l.tenant.String(), Key: fmt.Sprintf("%064x", uint64(n)*0x9e3779b97f4a7c15), KeyVersion: 1, CommandID: fmt.Sprintf("cmd_%x", id),
		Intent: command.Intent{Entity: "invoice", Action: "refund", Target: "inv_1"}, Class: command.I1, Actor: "key_1", Principal: "key_1",
		Fingerprint: "sha256:" + fmt.Sprintf("%064x", n), Status: command.InProgress, CreatedAt: l.now, UpdatedAt: l.now,
		ExpiresAt: l.now.Add(time.Hour), Owner: "node-a", LeaseUntil: l.now.Add(time.Minute), Try: 1, Envelope: l.body[:400], Version: 1,
		MAC: l.body[:32],
	}
}

// advance applies a step for each record; with an expected version of -1 it only appends evidence.
func (l *load) advance(records []command.Record, expect int64, kind string) {
	steps := make([]*command.Step, len(records))
	for i := range records {
		r := &records[i]
		change := command.Change{Record: r, Evidence: []evidence.Entry{{
			Type: kind, At: l.now, Decision: string(command.FirstSeen), CommandID: r.CommandID, SubmittedID: r.CommandID, Key: r.Key,
			Command: "invoice.refund", Actor: r.Actor, Fingerprint: r.Fingerprint,
		}}}
		steps[i] = &command.Step{Tenant: r.Tenant, Key: r.Key, Expect: expect}
		if expect < 0 {
			steps[i].Key, steps[i].Expect, change.Record = "", 0, nil
		}
		steps[i].Settle = func(command.Applied) (command.Change, error) { return change, nil }
	}
	results, err := l.s.Advance(l.b.Context(), l.now, steps)
	if err != nil {
		l.b.Fatal(err)
	}
	for i := range results {
		if results[i].Refused || results[i].Err != nil {
			l.b.Fatalf("%+v", results[i])
		}
	}
}

func (l *load) insert(records []command.Record) {
	err := l.s.write(l.b.Context(), "insert", func(c *conn) error {
		for i := range records {
			if _, err := c.exec("INSERT INTO bare VALUES (?, ?, ?)", records[i].Tenant, records[i].Key, records[i].Envelope); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		l.b.Fatal(err)
	}
}
