package sqlite

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const noticeColumns = `id, tenant_id, endpoint_id, delivery_id, event_id, kind, detail, link, created_at, acknowledged_at, acknowledged_by`

func scanNotice(r *rows) godwit.Notice {
	return godwit.Notice{
		ID: r.id(0), TenantID: r.id(1), EndpointID: r.id(2), DeliveryID: r.id(3), EventID: r.id(4), Kind: godwit.NoticeKind(r.text(5)),
		Detail: r.text(6), Link: r.text(7), CreatedAt: r.time(8), AcknowledgedAt: r.time(9), AcknowledgedBy: r.text(10),
	}
}

func insertNotice(c *conn, n *godwit.Notice) error {
	_, err := c.exec("INSERT INTO notices ("+noticeColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		n.ID[:], n.TenantID[:], n.EndpointID[:], n.DeliveryID[:], n.EventID[:], string(n.Kind), n.Detail, n.Link,
		micros(n.CreatedAt), micros(n.AcknowledgedAt), n.AcknowledgedBy)
	return err
}

// notices keeps messages for operators.
type notices struct{ *database }

// ListNotices lists a tenant's notices, newest first.
func (s *notices) ListNotices(ctx context.Context, tenant godwit.TenantID, openOnly bool, p store.Page) ([]godwit.Notice, error) {
	q := newest("SELECT "+noticeColumns+" FROM notices INDEXED BY notices_tenant", "id", p)
	q.where("tenant_id = ?", tenant[:])
	if openOnly {
		q.where("acknowledged_at = 0")
	}
	var ns []godwit.Notice
	err := s.read(ctx, "list notices", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error { ns = append(ns, scanNotice(r)); return nil })
	})
	return ns, err
}

// AcknowledgeNotice marks a notice as acknowledged by an operator.
func (s *notices) AcknowledgeNotice(ctx context.Context, tenant godwit.TenantID, id godwit.NoticeID, by string, now time.Time) (*godwit.Notice, error) {
	var n godwit.Notice
	err := s.write(ctx, "acknowledge notice", func(c *conn) error {
		_, err := c.exec(`UPDATE notices SET acknowledged_at = ?, acknowledged_by = ?
			WHERE id = ? AND tenant_id = ? AND acknowledged_at = 0`, micros(now), by, id[:], tenant[:])
		if err != nil {
			return err
		}
		return c.first(ctx, "SELECT "+noticeColumns+" FROM notices WHERE id = ? AND tenant_id = ?", ids(id[:], tenant[:]),
			func(r *rows) error { n = scanNotice(r); return nil })
	})
	if err != nil {
		return nil, err
	}
	return &n, nil
}
