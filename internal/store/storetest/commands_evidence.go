package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var deliveryEvidenceCases = []commandCase{
	{name: "comes with its results", test: evidenceOfResults},
	{name: "stands beside that of commands", test: evidenceOfBoth},
}

func evidenceOfResults(t *testing.T, f *commands) {
	first := f.acceptOne()
	second := f.acceptOne()
	claimed := f.claim(f.endpoint, 10).Work
	same(t, "claimed", len(claimed), 2)
	b := &store.Batch{Results: []store.Result{f.attempted(claimed[0], godwit.DeliveryAccepted), f.attempted(claimed[1], godwit.DeliveryAccepted)}}
	b.Results[1].Epoch++ // of another owner
	told := func(i int, kind string) store.NewEvidence {
		return store.NewEvidence{TenantID: f.tenant, Result: i, Entry: evidence.Entry{
			Type: kind, At: f.now, CommandID: "cmd_1", DeliveryID: b.Results[i].Delivery.ID.String(), ResponseStatus: 200,
		}}
	}
	b.Evidence = []store.NewEvidence{told(1, evidence.Dead), told(0, evidence.Delivered), told(1, evidence.Delivered), told(0, evidence.Observation)}
	same(t, "fenced", f.commit(b).Fenced, []int{1})
	check := func() {
		t.Helper()
		items := f.chain(f.name, 2)
		same(t, "evidence", []evidence.Entry{items[0].Entry, items[1].Entry}, []evidence.Entry{b.Evidence[1].Entry, b.Evidence[3].Entry})
	}
	check()
	same(t, "fenced when repeated", f.commit(b).Fenced, []int{0, 1})
	check()
	if d := []godwit.DeliveryID{first, second}; b.Results[0].Delivery.ID != d[0] && b.Results[0].Delivery.ID != d[1] {
		t.Errorf("recorded %v", b.Results[0].Delivery.ID)
	}
}

func evidenceOfBoth(t *testing.T, f *commands) {
	other := f.newTenant()
	r := f.newRecord(key(1))
	for range 2 {
		f.apply(observe(f.name, f.entry(evidence.Reserved, r)))
		f.acceptOne()
		b := &store.Batch{Results: []store.Result{f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)}}
		for _, tenant := range []godwit.TenantID{f.tenant, other, f.tenant} {
			b.Evidence = append(b.Evidence, store.NewEvidence{TenantID: tenant, Entry: evidence.Entry{Type: evidence.Delivered, At: f.now, CommandID: r.CommandID}})
		}
		f.commit(b)
		f.tick(time.Second)
	}
	f.chain(f.name, 6)
	f.chain(other.String(), 2)
	same(t, "by the command", len(got(f.cs.Evidence(f.ctx, command.EvidenceQuery{Tenant: f.name, CommandID: r.CommandID}))(t)), 6)
}
