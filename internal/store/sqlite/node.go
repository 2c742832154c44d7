package sqlite

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// nodes records which process runs under each node name.
type nodes struct {
	*database
	members *members
	claimed map[string]godwit.Node // by this process; guarded by turn
}

// ClaimNode gives the name to the process. Only one process serves a data directory, so a claim fails only if this process
// already has the name.
func (s *nodes) ClaimNode(ctx context.Context, n godwit.Node) error {
	return s.write(ctx, "claim node name", func(c *conn) error {
		if other, claimed := s.claimed[n.Name]; claimed && other.Instance != n.Instance {
			return &store.NodeTaken{Name: n.Name, Holder: other.Holder}
		}
		if len(s.claimed) == 0 { // the other rows are of processes that have ended
			if _, err := c.exec("DELETE FROM nodes WHERE name <> ?", n.Name); err != nil {
				return err
			}
		}
		_, err := c.exec(`INSERT INTO nodes (name, instance, holder) VALUES (?1, ?2, ?3)
			ON CONFLICT (name) DO UPDATE SET instance = ?2, holder = ?3`, n.Name, n.Instance, n.Holder)
		if err != nil {
			return err
		}
		// An owner without an instance was stored by an earlier release.
		if _, err := c.exec(`UPDATE leases SET owner = '' WHERE owner = ?1 OR substr(owner, 1, length(?1) + 1) = ?1 || ' '`, n.Name); err != nil {
			return err
		}
		s.claimed[n.Name] = n
		s.members.claim(&n)
		return nil
	})
}
