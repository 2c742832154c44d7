package native

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// Notice tells an operator about a fact or a decision to make.
type Notice struct {
	ID             string     `json:"id" example:"ntc_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	Kind           string     `json:"kind" example:"endpoint-disabled"`
	Detail         string     `json:"detail,omitempty"`
	Link           string     `json:"link,omitempty" doc:"Link field of a 451 response"`
	EndpointID     string     `json:"endpoint_id,omitempty"`
	DeliveryID     string     `json:"delivery_id,omitempty"`
	EventID        string     `json:"event_id,omitempty"`
	CreatedAt      time.Time  `json:"created_at"`
	AcknowledgedAt *time.Time `json:"acknowledged_at,omitempty"`
	AcknowledgedBy string     `json:"acknowledged_by,omitempty"`
}

func noticeView(n *godwit.Notice) Notice {
	v := Notice{
		ID: n.ID.String(), Kind: string(n.Kind), Detail: n.Detail, Link: n.Link, CreatedAt: n.CreatedAt.UTC(),
		AcknowledgedAt: timestamp(n.AcknowledgedAt), AcknowledgedBy: n.AcknowledgedBy,
	}
	if !n.EndpointID.IsZero() {
		v.EndpointID = n.EndpointID.String()
	}
	if !n.DeliveryID.IsZero() {
		v.DeliveryID = n.DeliveryID.String()
	}
	if !n.EventID.IsZero() {
		v.EventID = n.EventID.String()
	}
	return v
}

type noticeOutput struct{ Body Notice }

type listNoticesInput struct {
	PageParams
	Open bool `query:"open" doc:"Only those that nobody has acknowledged"`
}

type noticePath struct {
	ID string `path:"id" doc:"Id of the notice"`
}

// Descriptions of the operations on notices.
var (
	listNoticesDoc = huma.Operation{
		OperationID: "list-notices", Summary: "List notices",
		Description: "What a person should know or decide: an endpoint was disabled, has moved, refuses for legal reasons, resolves to a forbidden address.",
	}
	acknowledgeNoticeDoc = huma.Operation{
		OperationID: "acknowledge-notice",
		Summary:     "Acknowledge a notice",
	}
)

// noticeHandlers serve the operations on notices.
type noticeHandlers struct {
	store noticeStore
	now   func() time.Time
}

// noticeStore is the part of the store that keeps notices.
type noticeStore interface {
	ListNotices(ctx context.Context, tenant godwit.TenantID, openOnly bool, p store.Page) ([]godwit.Notice, error)
	AcknowledgeNotice(ctx context.Context, tenant godwit.TenantID, id godwit.NoticeID, by string, at time.Time) (*godwit.Notice, error)
}

func (h *noticeHandlers) list(ctx context.Context, c *management.Caller, in *listNoticesInput) (*listOutput[Notice], error) {
	return notices.page(in.PageParams, func(p store.Page) ([]godwit.Notice, error) {
		return h.store.ListNotices(ctx, c.Tenant.ID, in.Open, p)
	})
}

func (h *noticeHandlers) acknowledge(ctx context.Context, c *management.Caller, in *noticePath) (*noticeOutput, error) {
	id, err := godwit.ParseNoticeID(in.ID)
	if err != nil {
		return nil, badID("id", "ntc_…")
	}
	n, err := h.store.AcknowledgeNotice(ctx, c.Tenant.ID, id, c.Actor(), h.now())
	if err != nil {
		return nil, err
	}
	return &noticeOutput{Body: noticeView(n)}, nil
}
