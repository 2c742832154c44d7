package postgres

import "github.com/godwit-hq/godwit/internal/store"

// Store is a PostgreSQL database. Each part keeps one noun, in the file of that name. The parts share the database, and
// newStore shows which part uses another one.
type Store struct {
	*database
	partitions *partitions
	recent     *recent // commands that this node stored last

	*batches
	*fanouts
	*claims
	*leases
	*nodes
	*signals

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
	*configuration
	*upkeep
}

var _ store.Store = (*Store)(nil)

func newStore(db *database, o *Options) *Store {
	recent := &recent{}
	s := &Store{
		database: db, recent: recent, partitions: &partitions{database: db, width: o.PartitionWidth},
		batches: &batches{database: db, vacuum: newVacuumer(db), recent: recent, slot: newUsageSlot()},
		fanouts: &fanouts{db}, leases: &leases{db}, nodes: &nodes{database: db}, signals: &signals{db},
		events: &events{db}, deliveries: &deliveries{db}, attempts: &attempts{db}, deadLetters: &deadLetters{db},
		endpoints: &endpoints{db}, health: &health{db}, sources: &sources{db}, eventTypes: &eventTypes{db},
		commands: &commands{database: db, lookups: lookups{db: db}, recent: recent}, chains: &chains{db},
		environments: &environments{db}, broadcasts: &broadcasts{db}, tenants: &tenants{db}, keys: &keys{db}, sessions: &sessions{db}, idempotency: &idempotency{db}, notices: &notices{db},
		sealedRows: &sealedRows{db}, allowances: &allowances{db}, usages: &usages{db}, history: &history{database: db}, keyChecks: &keyChecks{db}, configuration: &configuration{db}, upkeep: &upkeep{db},
	}
	s.claims = &claims{database: db, leases: s.leases}
	s.secrets = &secrets{database: db, endpoints: s.endpoints}
	s.sweeps = &sweeps{database: db, partitions: s.partitions, exactBytes: o.exactBytes}
	return s
}
