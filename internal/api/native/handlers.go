package native

import (
	"github.com/godwit-hq/godwit/internal/api/httpapi"
)

// handlers are the handlers of each noun. Each holds only what it uses of the services.
type handlers struct {
	event          *eventIngest
	batch          *batchIngest
	broadcasts     *broadcastHandlers
	events         *eventHandlers
	explain        *explainHandlers
	search         *eventSearch
	eventTypes     *eventTypeHandlers
	endpoints      *endpointHandlers
	endpointStatus *endpointStatusHandlers
	secrets        *secretHandlers
	trials         *trialHandlers
	deliveries     *deliveryHandlers
	deliveryBulk   *deliveryBulk
	attempts       *attemptStream
	deadLetters    *deadLetterHandlers
	export         *deadLetterExport
	notices        *noticeHandlers
	sources        *sourceHandlers
	sourceRecords  *sourceRecordHandlers
	keys           *keyHandlers
	sessions       *sessionHandlers
	portalLinks    *portalLinkHandlers
	tenants        *tenantHandlers
	environments   *environmentHandlers
	portal         *portalHandlers
	signingKeys    *signingKeyHandlers
	usage          *usageHandlers
	history        *historyHandlers
	nodes          *nodeHandlers
	settings       *settingsHandlers
}

func newHandlers(cfg *Config, api *httpapi.API) *handlers {
	finder, now := endpointFinder{cfg.Management.Endpoints}, cfg.Clock.Now
	owners := ownerFinder{cfg.Management.Tenants}
	single := &eventIngest{intake: cfg.Intake, bodies: cfg.Bodies}
	return &handlers{
		event:      single,
		batch:      &batchIngest{intake: cfg.Intake, bodies: cfg.Bodies, maxBody: cfg.MaxBatchBody, problems: cfg.Problems},
		broadcasts: &broadcastHandlers{eventIngest: single, store: cfg.Store, engine: cfg.Engine},
		events:     &eventHandlers{store: cfg.Store, engine: cfg.Engine, finder: finder},
		explain:    &explainHandlers{store: cfg.Store, engine: cfg.Engine, finder: finder},
		search: &eventSearch{
			store: cfg.Store, sources: sourceFinder{cfg.Sources}, running: httpapi.NewQuota(maxSearches, maxSearchesOfAll), stall: cfg.StallTimeout,
			api: api, clock: cfg.Clock, done: cfg.Done, log: cfg.Log,
		},
		eventTypes: &eventTypeHandlers{catalogue: cfg.Catalogue},
		endpoints:  &endpointHandlers{endpoints: cfg.Management.Endpoints, commands: cfg.Commands, finder: finder, now: now},
		endpointStatus: &endpointStatusHandlers{
			endpoints: cfg.Management.Endpoints, store: cfg.Store, engine: cfg.Engine, finder: finder,
		},
		secrets: &secretHandlers{
			secrets: cfg.Management.Secrets, endpoints: cfg.Management.Endpoints, keys: cfg.Management.SigningKeys, commands: cfg.Commands, finder: finder, now: now,
		},
		trials:       &trialHandlers{engine: cfg.Engine, finder: finder},
		deliveries:   &deliveryHandlers{store: cfg.Store, engine: cfg.Engine, finder: finder},
		deliveryBulk: &deliveryBulk{store: cfg.Store, engine: cfg.Engine, evidence: cfg.Commands, finder: finder},
		attempts: &attemptStream{
			engine: cfg.Engine, again: api.Recheck, running: httpapi.NewQuota(maxStreams, maxStreamsOfAll),
			stall: cfg.StallTimeout, done: cfg.Done, clock: cfg.Clock, log: cfg.Log,
		},
		deadLetters: &deadLetterHandlers{store: cfg.Store, engine: cfg.Engine, commands: cfg.Commands, preview: cfg.Preview, finder: finder},
		export: &deadLetterExport{
			store: cfg.Store, finder: finder, running: httpapi.NewQuota(maxExports, maxExportsOfAll),
			stall: cfg.StallTimeout, page: exportPage(cfg.Intake.MaxPayload()), api: api, clock: cfg.Clock, log: cfg.Log,
		},
		notices:       &noticeHandlers{store: cfg.Store, now: now},
		sources:       &sourceHandlers{sources: cfg.Sources, finder: sourceFinder{cfg.Sources}, commands: cfg.Commands},
		sourceRecords: &sourceRecordHandlers{sources: cfg.Sources, finder: sourceFinder{cfg.Sources}},
		keys:          &keyHandlers{keys: cfg.Management.Keys},
		tenants:       &tenantHandlers{tenants: cfg.Management.Tenants, commands: cfg.Commands},
		environments:  &environmentHandlers{environments: cfg.Management.Environments},
		portal:        &portalHandlers{environments: cfg.Management.Environments},
		signingKeys: &signingKeyHandlers{
			keys: cfg.Management.SigningKeys, environments: cfg.Management.Environments, callers: cfg.Management.Callers, commands: cfg.Commands, now: now,
		},
		usage:       &usageHandlers{store: cfg.Store, owners: owners, now: now},
		history:     &historyHandlers{store: cfg.Store, owners: owners, finder: finder, kept: cfg.StatsRetention, now: now},
		nodes:       &nodeHandlers{store: cfg.Store, name: cfg.Node},
		settings:    &settingsHandlers{read: cfg.Settings},
		portalLinks: &portalLinkHandlers{sessions: cfg.Management.Sessions, callers: cfg.Management.Callers, browser: cfg.Browser},
		sessions: &sessionHandlers{
			sessions: cfg.Management.Sessions, callers: cfg.Management.Callers, environments: cfg.Management.Environments,
			browser: cfg.Browser, failures: cfg.Failures, now: now, provider: cfg.IdentityProvider,
		},
	}
}
