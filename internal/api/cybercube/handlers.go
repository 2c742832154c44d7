package cybercube

import (
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// handlers are the handlers of each noun. Each holds only what it uses of the services.
type handlers struct {
	endpoints *endpointHandlers
	secrets   *secretHandlers
	trials    *trialHandlers
	failures  *failureHandlers
	logs      *logHandlers
	events    *eventIngest
	replays   *replayHandlers
}

func newHandlers(cfg *Config, api *httpapi.API, limits *budgets) *handlers {
	finder := endpointFinder{cfg.Management.Endpoints}
	keptEvents := func(t *godwit.Tenant) time.Duration {
		return cfg.TimeScale.Real(godwit.KeptFor(t.KeepEvents, cfg.EventRetention))
	}
	keptLetters := func(t *godwit.Tenant) time.Duration {
		return cfg.TimeScale.Real(godwit.KeptFor(t.KeepDeadLetters, cfg.DeadLetterRetention))
	}
	letters := &failureViews{store: cfg.Store, kept: keptLetters, maxPayload: cfg.Intake.MaxPayload()}
	return &handlers{
		endpoints: &endpointHandlers{
			endpoints: cfg.Management.Endpoints, commands: cfg.Commands, api: api, finder: finder, limits: limits,
			views: &endpointViews{
				secrets: cfg.Management.Secrets, engine: cfg.Engine, store: cfg.Store, now: cfg.Clock.Now, scale: cfg.TimeScale,
			},
		},
		secrets: &secretHandlers{commands: cfg.Commands, api: api, finder: finder},
		trials:  &trialHandlers{engine: cfg.Engine, finder: finder, limit: limits.test, now: cfg.Clock.Now},
		failures: &failureHandlers{
			views: letters, finder: finder,
			export: &failureExport{views: letters, running: httpapi.NewQuota(maxExports, maxExportsOfAll), stall: cfg.StallTimeout, log: cfg.Log},
		},
		logs:   &logHandlers{store: cfg.Store, finder: finder},
		events: &eventIngest{intake: cfg.Intake, store: cfg.Store, api: api, now: cfg.Clock.Now, unknownTypes: cfg.UnknownTypes},
		replays: &replayHandlers{
			events: &cfg.Services, store: cfg.Store, engine: cfg.Engine, commands: cfg.Commands, api: api, finder: finder, limit: limits.replay,
			now: cfg.Clock.Now, kept: keptEvents, log: cfg.Log,
		},
	}
}
