package command

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/godwit-hq/godwit/evidence"
)

// checkpoints signs chains of evidence.
type checkpoints struct{ *records }

// signAll signs the head of every chain that has grown since its last checkpoint. It returns the number of signed heads.
func (x *checkpoints) signAll(ctx context.Context, key ed25519.PrivateKey) (int, error) {
	signed := 0
	var failed []error
	for after := ""; ; {
		heads, err := x.cfg.Store.EvidenceHeads(ctx, after, atOnce)
		if err != nil {
			return signed, errors.Join(append(failed, fmt.Errorf("list chains: %w", err))...)
		}
		for _, h := range heads {
			after = h.Tenant
			grown, err := x.grown(ctx, h)
			if err == nil && grown {
				err = x.sign(key, h)
			}
			switch {
			case err != nil: // the error of one chain, for example after tampering; the other chains are still signed
				failed = append(failed, fmt.Errorf("chain of tenant %s: %w", h.Tenant, err))
			case grown:
				signed++
			}
		}
		if len(heads) < atOnce || ctx.Err() != nil {
			return signed, errors.Join(failed...)
		}
	}
}

// grown reports whether the last item of a chain is not a checkpoint.
func (x *checkpoints) grown(ctx context.Context, h evidence.Head) (bool, error) {
	items, err := x.cfg.Store.Evidence(ctx, EvidenceQuery{Tenant: h.Tenant, After: h.Seq - 1, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("read head of chain: %w", err)
	}
	return len(items) == 1 && items[0].Type != evidence.Signed, nil
}

func (x *checkpoints) sign(key ed25519.PrivateKey, h evidence.Head) error {
	now := x.cfg.Now()
	c, err := evidence.Sign(key, h, now)
	if err != nil {
		return fmt.Errorf("sign checkpoint: %w", err)
	}
	return x.observe(h.Tenant, c.Entry(now))
}
