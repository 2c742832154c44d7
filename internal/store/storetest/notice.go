package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var noticeCases = []testCase{
	{"list and acknowledge", noticeList},
	{"belongs to its tenant", noticeTenant},
}

func makeNotice(f *fixture) godwit.Notice {
	return godwit.Notice{
		ID: mint[godwit.NoticeID](f.now), TenantID: f.tenant, EndpointID: f.endpoint, Kind: godwit.NoticeEndpointDisabled,
		Detail: "answered 410", CreatedAt: f.now,
	}
}

func noticeList(t *testing.T, f *fixture) {
	var want []godwit.Notice
	for i := range 5 {
		f.tick(time.Second)
		n := makeNotice(f)
		if i%2 == 0 {
			n.Kind, n.Link = godwit.NoticeLegalReview, "<https://legal.example/>; rel=\"blocked-by\""
			n.DeliveryID, n.EventID = mint[godwit.DeliveryID](f.now), mint[godwit.EventID](f.now)
		}
		f.commit(&store.Batch{Notices: []godwit.Notice{n}})
		want = append([]godwit.Notice{n}, want...)
	}
	list := func(openOnly bool) []godwit.Notice {
		return pages(t, func(n *godwit.Notice) [16]byte { return n.ID }, func(p store.Page) ([]godwit.Notice, error) {
			return f.s.ListNotices(f.ctx, f.tenant, openOnly, p)
		})
	}
	same(t, "notices", list(false), want)
	same(t, "open notices", list(true), want)

	want[2].AcknowledgedAt, want[2].AcknowledgedBy = f.tick(time.Minute), "key_9"
	same(t, "acknowledged", got(f.s.AcknowledgeNotice(f.ctx, f.tenant, want[2].ID, "key_9", f.now))(t), &want[2])
	same(t, "acknowledged again", got(f.s.AcknowledgeNotice(f.ctx, f.tenant, want[2].ID, "key_10", f.tick(time.Minute)))(t), &want[2])
	same(t, "notices", list(false), want)
	same(t, "open notices", list(true), append(append([]godwit.Notice{}, want[:2]...), want[3:]...))
	_, err := f.s.AcknowledgeNotice(f.ctx, f.tenant, mint[godwit.NoticeID](f.now), "x", f.now)
	f.is(err, store.ErrNotFound)
}

func noticeTenant(t *testing.T, f *fixture) {
	n := makeNotice(f)
	f.commit(&store.Batch{Notices: []godwit.Notice{n}})
	stranger := f.newTenant()
	_, err := f.s.AcknowledgeNotice(f.ctx, stranger, n.ID, "x", f.now)
	f.is(err, store.ErrNotFound)
	if ns := got(f.s.ListNotices(f.ctx, stranger, false, store.Page{Limit: 5}))(t); len(ns) != 0 {
		t.Errorf("a stranger lists %v", ns)
	}
	if ns := got(f.s.ListNotices(f.ctx, f.tenant, true, store.Page{Limit: 5}))(t); len(ns) != 1 {
		t.Errorf("%d open notices, want 1", len(ns))
	}
}
