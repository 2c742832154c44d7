package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const noticeFields = `id, tenant_id, endpoint_id, delivery_id, event_id, kind, detail, link, created_at, acknowledged_at, acknowledged_by`

// notices keeps messages for operators.
type notices struct{ *database }

// ListNotices lists a tenant's notices; openOnly leaves out acknowledged ones.
func (s *notices) ListNotices(ctx context.Context, tenant godwit.TenantID, openOnly bool, p store.Page) ([]godwit.Notice, error) {
	var w where
	w.add("tenant_id = ?", [16]byte(tenant))
	w.page(p)
	if openOnly {
		w.add("acknowledged_at IS NULL")
	}
	r, err := s.pool.Query(ctx, `SELECT `+noticeFields+` FROM notices`+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list notices", err)
	}
	list, err := pgx.CollectRows(r, scanNotice)
	return values(list), failed("list notices", err)
}

// AcknowledgeNotice keeps the first acknowledgement when it is repeated.
func (s *notices) AcknowledgeNotice(ctx context.Context, tenant godwit.TenantID, id godwit.NoticeID, by string, now time.Time) (*godwit.Notice, error) {
	r, err := s.pool.Query(ctx, `UPDATE notices SET acknowledged_at = coalesce(acknowledged_at, $4),
			acknowledged_by = CASE WHEN acknowledged_at IS NULL THEN $3 ELSE acknowledged_by END
		WHERE tenant_id = $1 AND id = $2 RETURNING `+noticeFields, [16]byte(tenant), [16]byte(id), clean(by), now)
	if err != nil {
		return nil, failed("acknowledge notice", err)
	}
	n, err := pgx.CollectExactlyOneRow(r, scanNotice)
	return n, failed("acknowledge notice", err)
}

func scanNotice(r pgx.CollectableRow) (*godwit.Notice, error) {
	n := &godwit.Notice{}
	return n, r.Scan(scanID(&n.ID), scanID(&n.TenantID), scanID(&n.EndpointID), scanID(&n.DeliveryID), scanID(&n.EventID),
		&n.Kind, &n.Detail, &n.Link, scanTime(&n.CreatedAt), scanTime(&n.AcknowledgedAt), &n.AcknowledgedBy)
}
