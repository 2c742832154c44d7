package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// ExportEvidence returns the tenant's chain of evidence as a signed file, from the item with the sequence number on; 1 is all of
// it. Package evidence verifies it. Close it when done.
func (c *Client) ExportEvidence(ctx context.Context, from int64) (io.ReadCloser, error) {
	path := fmt.Sprintf("/ids/v1/evidence/export?from_seq=%d", from)
	resp, err := c.send(ctx, http.MethodGet, path, http.Header{"Accept": {"application/x-ndjson"}}, nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
