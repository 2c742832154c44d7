package sqlite

import (
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Store is a SQLite database file. Each part keeps one noun, in the file of that name. The parts share the database, and
// newStore shows which part uses another one.
type Store struct {
	*database
	*schema

	*batches
	*fanouts
	*claims
	*leases
	*nodes

	*events
	*deliveries
	*attempts
	*deadLetters

	*endpoints
	*health
	*secrets
	*sources
	*eventTypes

	*environments
	*broadcasts
	*tenants
	*keys
	*sessions
	*idempotency
	*notices

	*commands
	*chains

	*sweeps
	*sealedRows
	*allowances
	*usages
	*history
	*keyChecks
	configuration
	*upkeep
}

var _ store.Store = (*Store)(nil)

func newStore(db *database, m *members) *Store {
	s := &Store{
		database: db, schema: &schema{db},
		batches: &batches{db}, fanouts: &fanouts{db}, claims: &claims{db}, leases: &leases{db, m},
		nodes:  &nodes{database: db, members: m, claimed: map[string]godwit.Node{}},
		events: &events{db}, deliveries: &deliveries{db}, attempts: &attempts{db},
		endpoints: &endpoints{db}, health: &health{db}, secrets: &secrets{db}, sources: &sources{db}, eventTypes: &eventTypes{db},
		environments: &environments{db}, broadcasts: &broadcasts{db}, tenants: &tenants{db}, keys: &keys{db}, sessions: &sessions{db}, idempotency: &idempotency{db}, notices: &notices{db},
		chains: &chains{db},
		sweeps: &sweeps{database: db, keys: &eventKeys{database: db}}, sealedRows: &sealedRows{db}, allowances: &allowances{db}, usages: &usages{db}, history: &history{db}, keyChecks: &keyChecks{db}, upkeep: &upkeep{db},
	}
	s.sweeps.keys.size.Store(keySegment)
	s.deadLetters = &deadLetters{database: db, deliveries: s.deliveries}
	s.commands = &commands{database: db, batches: s.batches, deliveries: s.deliveries, deadLetters: s.deadLetters}
	return s
}
