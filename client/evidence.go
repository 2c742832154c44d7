package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// ExportEvidence returns the tenant's chain of evidence as a signed file, starting with the given sequence number; 1 returns
// the whole chain. Package evidence verifies it. Close it when done.
func (c *Client) ExportEvidence(ctx context.Context, from int64) (io.ReadCloser, error) {
	path := fmt.Sprintf("/ids/v1/evidence/export?from_seq=%d", from)
	resp, err := c.send(ctx, http.MethodGet, path, http.Header{"Accept": {"application/x-ndjson"}}, nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// EvidenceKey returns the public key that the server signs evidence with, as PEM. Keep it where the server's operator cannot
// change it, and verify exports with it.
func (c *Client) EvidenceKey(ctx context.Context) ([]byte, error) {
	resp, err := c.send(ctx, http.MethodGet, "/ids/v1/evidence/key", http.Header{"Accept": {"application/x-pem-file"}}, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return nil, fmt.Errorf("read evidence key: %w", err)
	}
	return text, nil
}
