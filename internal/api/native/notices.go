package native

import (
	"context"
	"net/http"
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

func (s *server) noticeRoutes() {
	type listInput struct {
		PageParams
		Open bool `query:"open" doc:"Only those that nobody has acknowledged"`
	}
	typed(s, mayRead, huma.Operation{
		OperationID: "list-notices", Method: http.MethodGet, Path: "/v1/notices", Tags: []string{"Notices"}, Summary: "List notices",
		Description: "What a person should know or decide: an endpoint was disabled, has moved, refuses for legal reasons, resolves to a forbidden address.",
	}, func(ctx context.Context, c *management.Caller, in *listInput) (*listOutput[Notice], error) {
		return notices.page(in.PageParams, func(p store.Page) ([]godwit.Notice, error) {
			return s.cfg.Store.ListNotices(ctx, c.Tenant.ID, in.Open, p)
		})
	})
	type path struct {
		ID string `path:"id" doc:"Id of the notice"`
	}
	typed(s, mayManage, huma.Operation{
		OperationID: "acknowledge-notice", Method: http.MethodPost, Path: "/v1/notices/{id}/acknowledge", Tags: []string{"Notices"},
		Summary: "Acknowledge a notice",
	}, func(ctx context.Context, c *management.Caller, in *path) (*noticeOutput, error) {
		id, err := godwit.ParseNoticeID(in.ID)
		if err != nil {
			return nil, badID("id", "ntc_…")
		}
		n, err := s.cfg.Store.AcknowledgeNotice(ctx, c.Tenant.ID, id, c.Actor(), s.cfg.Clock.Now())
		if err != nil {
			return nil, err
		}
		return &noticeOutput{Body: noticeView(n)}, nil
	})
}
