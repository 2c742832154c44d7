package shard

import (
	"cmp"
	"slices"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// share returns how many shards the owner's node should have. All running nodes get the same number, up to one: the oldest get
// the remainder. A stopping node still counts; nodes that are leaving or silent get none.
func share(members []godwit.Member, owner string) int {
	var running []*godwit.Member
	for i := range members {
		if m := &members[i]; m.Alive && (m.State == godwit.NodeRunning || m.State == godwit.NodeStopping) {
			running = append(running, m)
		}
	}
	slices.SortFunc(running, func(a, b *godwit.Member) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.Name, b.Name))
	})
	for i, m := range running {
		if m.Owner() == owner {
			n := godwit.Shards / len(running)
			if i < godwit.Shards%len(running) {
				n++
			}
			return n
		}
	}
	return 0
}
