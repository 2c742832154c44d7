package native

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/typedoc"
)

type (
	catalogueInput struct {
		Format string `query:"format" enum:"openapi,asyncapi" default:"openapi" doc:"openapi: OpenAPI 3.1, a webhook for each type. asyncapi: AsyncAPI 3.0, a message for each type."`
	}
	catalogueOutput struct{ Body json.RawMessage }
)

var catalogueDoc = huma.Operation{
	OperationID: "get-catalogue", Summary: "Get the catalogue as a document for generators",
	Description: "The tenant's own event types and those that its environment shares, with the schemas in force. Types without a schema are in it too.",
}

// document renders the catalogue.
func (h *eventTypeHandlers) document(ctx context.Context, c *management.Caller, in *catalogueInput) (*catalogueOutput, error) {
	const page = 200
	var types []typedoc.Type
	version := 0 // grows with every version of a schema
	for after := ""; ; {
		list, err := h.catalogue.List(ctx, c.Tenant, after, page)
		if err != nil {
			return nil, fmt.Errorf("list event types: %w", err)
		}
		for i := range list {
			t, n := documented(&list[i])
			types, version = append(types, t), version+n
		}
		if len(list) < page {
			break
		}
		after = list[len(list)-1].Name
	}
	write := typedoc.WriteOpenAPI
	if in.Format == "asyncapi" {
		write = typedoc.WriteAsyncAPI
	}
	document, err := write(typedoc.Info{Title: "Events of " + c.Tenant.Name, Version: fmt.Sprintf("1.%d.0", version)}, types)
	return &catalogueOutput{Body: document}, err
}

// documented returns a type with the schema in force, and the version of that.
func documented(t *godwit.EventType) (typedoc.Type, int) {
	out := typedoc.Type{Name: t.Name, Description: t.Description, Deprecated: t.Deprecated, Example: t.Example}
	if len(t.Schemas) == 0 {
		return out, 0
	}
	last := &t.Schemas[len(t.Schemas)-1]
	out.Schema = last.Schema
	return out, last.Version
}
