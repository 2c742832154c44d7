package storetest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
)

var evidenceCases = []recordCase{
	{name: "is a chain", test: evidenceChain},
	{name: "many append at once", test: evidenceRace},
	{name: "keeps every member", test: evidenceMembers},
	{name: "that has no place in the chain fails its step alone", test: evidenceImpossible},
	{name: "by key, command and target", test: evidenceQueries},
	{name: "heads", test: evidenceHeads, alone: true},
	{name: "is never changed", test: evidenceAppendOnly, exec: true},
}

// entry returns evidence of a record.
func (f *records) entry(kind string, r command.Record) evidence.Entry {
	return evidence.Entry{
		Type: kind, At: f.now, Decision: string(command.FirstSeen), Executed: kind == evidence.ExecutedOK, CommandID: r.CommandID,
		SubmittedID: r.CommandID, Key: r.Key, Command: "invoice.refund", Actor: r.Actor, Fingerprint: r.Fingerprint,
	}
}

// chain reads a tenant's evidence and checks that it has want items, no gap, valid links, and ends at its head.
func (f *records) chain(tenant string, want int) []evidence.Item {
	f.t.Helper()
	items := got(f.cs.Evidence(f.ctx, command.EvidenceQuery{Tenant: tenant}))(f.t)
	head := evidence.Head{}
	for i, item := range items {
		linked := got(evidence.Link(head, tenant, item.Entry))(f.t)
		same(f.t, fmt.Sprintf("item %d", i), item, linked)
		same(f.t, "sequence number", item.Seq, int64(i+1))
		head = evidence.Head{Tenant: tenant, Seq: item.Seq, Hash: item.Hash, At: item.At}
	}
	same(f.t, "items of evidence", len(items), want)
	same(f.t, "head", got(f.cs.EvidenceHead(f.ctx, tenant))(f.t), head)
	return items
}

func evidenceChain(t *testing.T, f *records) {
	f.chain(f.name, 0)
	other := f.anotherTenant()
	r := f.newRecord(key(1))
	f.apply(observe(f.name))
	f.chain(f.name, 0)
	var want []string
	for i := range 4 { // several entries per step, several steps per batch, mixed tenants
		f.tick(time.Second)
		kinds := []string{evidence.Reserved, evidence.Observation, evidence.ExecutedOK}
		f.apply(
			observe(f.name, f.entry(kinds[0], r), f.entry(kinds[1], r)),
			observe(other, f.entry(evidence.Unresolved, r)),
			observe(f.name, f.entry(kinds[2], r)),
		)
		want = append(want, kinds...)
		f.chain(other, i+1)
	}
	var kinds []string
	for _, item := range f.chain(f.name, 12) {
		kinds = append(kinds, item.Type)
	}
	same(t, "order", kinds, want)
}

func evidenceRace(t *testing.T, f *records) {
	const many, each = 20, 3
	together(t, many, func(i int) error {
		r := command.Record{Tenant: f.name, Key: key(i % 5), CommandID: fmt.Sprintf("cmd_race_%d", i)}
		steps := make([]*command.Step, each)
		for k := range steps {
			steps[k] = observe(f.name, f.entry(evidence.Observation, r))
		}
		_, err := f.cs.Advance(f.ctx, f.now, steps)
		return err
	})
	items := f.chain(f.name, many*each)
	for i := 0; i < len(items); i += each { // the entries of a batch are adjacent
		same(t, "evidence of one batch", []string{items[i+1].CommandID, items[i+2].CommandID}, []string{items[i].CommandID, items[i].CommandID})
	}
}

func evidenceMembers(t *testing.T, f *records) {
	full := evidence.Entry{
		Type: evidence.RejectedTy, At: f.now.Add(time.Microsecond), Decision: string(command.ConflictRejected), Executed: true,
		CommandID: "cmd_1", SubmittedID: "cmd_2", PreviousID: "cmd_0", Key: key(1), Command: "invoice.refund", Actor: "key_\"ä\"", Channel: "api <é>",
		Fingerprint: "sha256:1", Stored: "sha256:2", OutcomeRef: "outcome:cmd_1", OutcomeStatus: "executed", OutcomeDigest: "sha256:3",
		Reason: "idempotency_conflict", EventID: "evt_1", DeliveryID: "del_1", EndpointID: "sub_1", ResponseStatus: 204, Target: "sub_2 <ü>",
	}
	least := evidence.Entry{Type: evidence.Dead, At: f.now}
	signed := evidence.Entry{Type: evidence.Signed, At: f.now, Checkpoint: &evidence.Checkpoint{
		Seq: 1, Hash: "sha256:" + key(1), KeyID: "sha256:" + key(2), Signature: base64.StdEncoding.EncodeToString(make([]byte, 64)),
	}}
	f.apply(observe(f.name, full, least, signed))
	items := f.chain(f.name, 3)
	same(t, "entries", []evidence.Entry{items[0].Entry, items[1].Entry, items[2].Entry}, []evidence.Entry{full, least, signed})
	same(t, "tenant", items[0].Tenant, f.name)
}

// No outcome is stored without its evidence.
func evidenceImpossible(t *testing.T, f *records) {
	r, other := f.newRecord(key(1)), f.newRecord(key(2))
	f.apply(put(0, r))
	effect, state := f.b.Kinds[0].Make(t, f.cs)
	before := state()
	step := f.outcome(r, effect)
	settle := step.Settle
	step.Settle = func(a command.Applied) (command.Change, error) {
		c, err := settle(a)
		c.Evidence = append(c.Evidence, evidence.Entry{Type: "it has no time"})
		return c, err
	}
	results := f.advance(step, put(0, other, f.entry(evidence.Reserved, other)))
	if results[0].Err == nil || results[0].Refused {
		t.Errorf("became %+v", results[0])
	}
	f.holds(r.Key, &r)
	f.holds(other.Key, &other)
	f.chain(f.name, 1)
	same(t, "state", state(), before)
}

// about names the object of an entry.
func about(target string, e evidence.Entry) evidence.Entry {
	e.Target = target
	return e
}

func evidenceQueries(t *testing.T, f *records) {
	one, two, again := f.newRecord(key(1)), f.newRecord(key(2)), f.newRecord(key(1))
	dup := f.entry(evidence.Observation, one)
	dup.SubmittedID = two.CommandID // both have the same id
	third := f.entry(evidence.Observation, one)
	third.SubmittedID = "cmd_third"
	f.apply(observe(f.name,
		f.entry(evidence.Reserved, one),   // 1
		f.entry(evidence.Reserved, two),   // 2
		f.entry(evidence.ExecutedOK, one), // 3
		dup,                               // 4
		third,                             // 5
		f.entry(evidence.Reserved, again), // 6: the key's next window
		evidence.Entry{Type: evidence.Observation, At: f.now}, // 7: of nothing with an id
		about("sub_1", f.entry(evidence.Reserved, two)),       // 8
		about("sub_2", f.entry(evidence.Reserved, two)),       // 9
		about("sub_1", f.entry(evidence.ExecutedOK, one)),     // 10
	))
	stranger := f.anotherTenant()
	f.apply(observe(stranger, about("sub_1", f.entry(evidence.Reserved, one))))
	for name, c := range map[string]struct {
		query command.EvidenceQuery
		want  []int64
	}{
		"all":                  {command.EvidenceQuery{}, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"some":                 {command.EvidenceQuery{Limit: 3}, []int64{1, 2, 3}},
		"the next":             {command.EvidenceQuery{After: 3, Limit: 3}, []int64{4, 5, 6}},
		"after the end":        {command.EvidenceQuery{After: 10}, nil},
		"key":                  {command.EvidenceQuery{Key: key(1)}, []int64{1, 3, 4, 5, 6, 10}},
		"key, paged":           {command.EvidenceQuery{Key: key(1), After: 3, Limit: 2}, []int64{4, 5}},
		"unknown key":          {command.EvidenceQuery{Key: key(3)}, nil},
		"command":              {command.EvidenceQuery{CommandID: one.CommandID}, []int64{1, 3, 4, 5, 10}},
		"command, paged":       {command.EvidenceQuery{CommandID: one.CommandID, After: 1, Limit: 2}, []int64{3, 4}},
		"as either":            {command.EvidenceQuery{CommandID: two.CommandID}, []int64{2, 4, 8, 9}},
		"as either, paged":     {command.EvidenceQuery{CommandID: two.CommandID, After: 2, Limit: 2}, []int64{4, 8}},
		"submitted":            {command.EvidenceQuery{CommandID: "cmd_third"}, []int64{5}},
		"key and command":      {command.EvidenceQuery{Key: key(1), CommandID: two.CommandID}, []int64{4}},
		"target":               {command.EvidenceQuery{Target: "sub_1"}, []int64{8, 10}},
		"target, paged":        {command.EvidenceQuery{Target: "sub_1", After: 8, Limit: 1}, []int64{10}},
		"target, the first":    {command.EvidenceQuery{Target: "sub_1", Limit: 1}, []int64{8}},
		"target and command":   {command.EvidenceQuery{Target: "sub_1", CommandID: two.CommandID}, []int64{8}},
		"target and key":       {command.EvidenceQuery{Target: "sub_1", Key: key(1)}, []int64{10}},
		"unknown target":       {command.EvidenceQuery{Target: "sub"}, nil},
		"unknown command":      {command.EvidenceQuery{CommandID: "cmd_none"}, nil},
		"key and its stranger": {command.EvidenceQuery{Tenant: stranger, Key: key(1)}, []int64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.query.Tenant == "" {
				c.query.Tenant = f.name
			}
			var seqs []int64
			for _, item := range got(f.cs.Evidence(f.ctx, c.query))(t) {
				seqs = append(seqs, item.Seq)
			}
			same(t, "items", seqs, c.want)
		})
	}
}

func evidenceHeads(t *testing.T, f *records) {
	if heads := got(f.cs.EvidenceHeads(f.ctx, "", 10))(t); len(heads) != 0 {
		t.Fatalf("heads of no chain: %+v", heads)
	}
	var want []evidence.Head
	for i := range 5 {
		tenant := f.anotherTenant()
		for range i + 1 {
			f.apply(observe(tenant, evidence.Entry{Type: evidence.Observation, At: f.tick(time.Microsecond)}))
		}
		items := f.chain(tenant, i+1)
		want = append(want, evidence.Head{Tenant: tenant, Seq: int64(i + 1), Hash: items[i].Hash, At: f.now})
	}
	slices.SortFunc(want, func(a, b evidence.Head) int {
		if a.Tenant < b.Tenant {
			return -1
		}
		return 1
	})
	var heads []evidence.Head
	for after := ""; ; after = heads[len(heads)-1].Tenant {
		page := got(f.cs.EvidenceHeads(f.ctx, after, 2))(t)
		heads = append(heads, page...)
		if len(page) < 2 {
			break
		}
	}
	same(t, "heads", heads, want)
}

func evidenceAppendOnly(t *testing.T, f *records) {
	r := f.newRecord(key(1))
	f.apply(observe(f.name, f.entry(evidence.Reserved, r), f.entry(evidence.ExecutedOK, r)))
	for _, statement := range []string{
		"UPDATE evidence_items SET hash = 'sha256:0'",
		"UPDATE evidence_items SET line = line WHERE seq = 1",
		"DELETE FROM evidence_items WHERE seq = 2",
		"DELETE FROM evidence_items",
	} {
		if err := f.b.Exec(t, f.cs, statement); err == nil {
			t.Errorf("the database does this: %s", statement)
		}
	}
	f.chain(f.name, 2)
}
