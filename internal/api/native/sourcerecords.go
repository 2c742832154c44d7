package native

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

type (
	acknowledgeInput struct {
		SourcePath
		Body struct {
			Version string `json:"version" maxLength:"64" doc:"Of the service description that was read, at /.well-known/webhook-service"`
			By      string `json:"by" maxLength:"200" doc:"Who agreed to it, on the upstream's side"`
		} `nameHint:"NewAcknowledgment"`
	}
	acknowledgmentOutput struct{ Body Acknowledgment }
	sourceListInput      struct {
		SourcePath
		PageParams
	}
)

// Descriptions of the operations on the records of a source.
var (
	acknowledgeDescriptionDoc = huma.Operation{
		OperationID: "acknowledge-description",
		Summary:     "Record that the upstream acknowledged the service description", DefaultStatus: http.StatusCreated,
		Description: "This is what lets deliveries be answered before they are delivered on (store-and-forward). It holds until a description promises less.",
	}
	listAcknowledgmentsDoc = huma.Operation{
		OperationID: "list-acknowledgments", Summary: "List acknowledgments of the service description",
	}
	listRejectionsDoc = huma.Operation{
		OperationID: "list-rejections", Summary: "List what a source did not take in",
		Description: fmt.Sprintf("The newest %d, for some days. Without payloads, credentials and header values.", godwit.MaxRejections),
	}
)

// sourceRecordHandlers serve what is recorded about a source: the upstream's acknowledgments, and the requests that were
// refused.
type sourceRecordHandlers struct {
	finder  sourceFinder
	sources interface {
		Acknowledge(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, version, by, actor string) (*godwit.Acknowledgment, error)
		Acknowledgments(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, p store.Page) ([]godwit.Acknowledgment, error)
		Rejections(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID, p store.Page) ([]godwit.Rejection, error)
	}
}

func (h *sourceRecordHandlers) acknowledge(ctx context.Context, c *management.Caller, in *acknowledgeInput) (*acknowledgmentOutput, error) {
	id, err := h.finder.id(ctx, c, in.SourcePath)
	if err != nil {
		return nil, err
	}
	a, err := h.sources.Acknowledge(ctx, c.Tenant.ID, id, in.Body.Version, in.Body.By, c.Actor())
	if err != nil {
		return nil, err
	}
	return &acknowledgmentOutput{Body: acknowledgmentView(a)}, nil
}

func (h *sourceRecordHandlers) acknowledgments(ctx context.Context, c *management.Caller, in *sourceListInput) (*listOutput[Acknowledgment], error) {
	id, err := h.finder.id(ctx, c, in.SourcePath)
	if err != nil {
		return nil, err
	}
	return acknowledgments.page(in.PageParams, func(p store.Page) ([]godwit.Acknowledgment, error) {
		return h.sources.Acknowledgments(ctx, c.Tenant.ID, id, p)
	})
}

func (h *sourceRecordHandlers) rejections(ctx context.Context, c *management.Caller, in *sourceListInput) (*listOutput[Rejection], error) {
	id, err := h.finder.id(ctx, c, in.SourcePath)
	if err != nil {
		return nil, err
	}
	return rejections.page(in.PageParams, func(p store.Page) ([]godwit.Rejection, error) {
		return h.sources.Rejections(ctx, c.Tenant.ID, id, p)
	})
}
