package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/telemetry"
)

// nodeStore is the part of the store that keeps the names of nodes.
type nodeStore interface {
	ClaimNode(ctx context.Context, n godwit.Node) error
	Describe(ctx context.Context) (store.Description, error)
}

// claimNode claims a name for this process. The engine's beats keep it.
func claimNode(ctx context.Context, s nodeStore, name, address string) (godwit.Node, error) {
	var instance [8]byte
	rand.Read(instance[:])
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	node := godwit.Node{
		Name: name, Instance: hex.EncodeToString(instance[:]), Holder: fmt.Sprintf("process %d on %s", os.Getpid(), host),
	}
	node.Address, node.Version = address, telemetry.Build().Version
	described, err := s.Describe(ctx)
	if err != nil {
		return node, err
	}
	node.Schema = described.ProgramSchema
	err = s.ClaimNode(ctx, node)
	var taken *store.NodeTaken
	if errors.As(err, &taken) {
		return node, fmt.Errorf("%w; stop that process, or give this one a name of its own with --node", taken)
	}
	return node, err
}
