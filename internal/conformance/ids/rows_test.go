package ids

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// TestRows runs the tests that can share one server, table by table.
func TestRows(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		for _, table := range []struct {
			name string
			test func(*testing.T, *rig)
		}{
			{"delivery", deliveryRows},
			{"class", classRows},
			{"key", keyRows},
			{"record", recordRows},
			{"replay", replayRows},
			{"confirmation", confirmationRows},
			{"shielding", shieldingRows},
			{"evidence", evidenceRows},
			{"security", securityRows},
		} {
			t.Run(table.name, func(t *testing.T) { table.test(t, r) })
		}
	})
}
