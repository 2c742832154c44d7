package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A nodeClaim is this process's claim on a node's name.
type nodeClaim struct {
	node  godwit.Node
	store nodeStore
	log   *slog.Logger
}

// nodeStore is the part of the store that keeps the names of nodes.
type nodeStore interface {
	ClaimNode(ctx context.Context, n godwit.Node) error
	KeepNode(ctx context.Context, n godwit.Node) error
}

// claimNode claims a name for this process.
func claimNode(ctx context.Context, s nodeStore, name string, log *slog.Logger) (*nodeClaim, error) {
	var instance [8]byte
	rand.Read(instance[:])
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	node := godwit.Node{
		Name: name, Instance: hex.EncodeToString(instance[:]), Holder: fmt.Sprintf("process %d on %s", os.Getpid(), host),
	}
	err = s.ClaimNode(ctx, node)
	var taken *store.NodeTaken
	if errors.As(err, &taken) {
		return nil, fmt.Errorf("%w; stop that process, or give this one a name of its own with --node", taken)
	}
	if err != nil {
		return nil, err
	}
	return &nodeClaim{node: node, store: s, log: log}, nil
}

// keep renews the claim on the node's name until ctx ends. It returns an error if another process has the name. It
// uses real time, as the database does.
func (c *nodeClaim) keep(ctx context.Context) error {
	ticker := time.NewTicker(store.NodeBeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		limited, cancel := context.WithTimeout(ctx, store.NodeSilence/3)
		err := c.store.KeepNode(limited, c.node)
		cancel()
		switch {
		case errors.Is(err, store.ErrFenced):
			return fmt.Errorf("another process runs as node %q now; this one stops: give each process a name of its own with --node", c.node.Name)
		case err != nil && ctx.Err() == nil:
			c.log.Warn("node name not kept; it is tried again", "error", err)
		}
	}
}
