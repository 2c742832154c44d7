package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// claimNode claims the node's name for this process.
func (a *App) claimNode(ctx context.Context) error {
	var instance [8]byte
	rand.Read(instance[:])
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	a.node = godwit.Node{
		Name: a.cfg.Node, Instance: hex.EncodeToString(instance[:]), Holder: fmt.Sprintf("process %d on %s", os.Getpid(), host),
	}
	err = a.store.ClaimNode(ctx, a.node)
	var taken *store.NodeTaken
	if errors.As(err, &taken) {
		return fmt.Errorf("%w; stop that process, or give this one a name of its own with --node", taken)
	}
	return err
}

// keepNode renews the claim on the node's name until ctx ends. It returns an error if another process has the name. It
// uses real time, as the database does.
func (a *App) keepNode(ctx context.Context) error {
	ticker := time.NewTicker(store.NodeBeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		limited, cancel := context.WithTimeout(ctx, store.NodeSilence/3)
		err := a.store.KeepNode(limited, a.node)
		cancel()
		switch {
		case errors.Is(err, store.ErrFenced):
			return fmt.Errorf("another process runs as node %q now; this one stops: give each process a name of its own with --node", a.node.Name)
		case err != nil && ctx.Err() == nil:
			a.log.Warn("node name not kept; it is tried again", "error", err)
		}
	}
}
