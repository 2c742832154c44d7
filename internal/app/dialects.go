package app

import (
	"net"
	"net/http"
	"slices"

	"github.com/godwit-hq/godwit/internal/api/cybercube"
	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/api/ojs"
	"github.com/godwit-hq/godwit/internal/api/wellknown"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/telemetry"
)

// newOJS returns the handlers of the Open Job Spec.
func (a *App) newOJS(d Dependencies, bodies *httpapi.Quota) (http.Handler, error) {
	refuse := &ojs.Errors{Log: a.log}
	guard, err := a.newGuard(d, refuse, ojs.Redact)
	if err != nil {
		return nil, err
	}
	backend := config.SQLite
	if a.cfg.Postgres() {
		backend = "postgres"
	}
	h, err := ojs.New(ojs.Config{
		Store: a.store, Engine: a.engine, Management: a.management, Idempotency: guard, Clock: a.clock, Log: a.log,
		Intake: a.intake, Version: telemetry.Build().Version, TimeScale: d.TimeScale, Backend: backend,
		Bodies: bodies, Commands: a.commands.runner,
	})
	if err != nil {
		return nil, err
	}
	return ojs.Binding(a.whenDelivering(h, refuse)), nil
}

// newCybercube returns the handlers of the CYBERCUBE standard.
func (a *App) newCybercube(d Dependencies, problems *problem.Writer, bodies *httpapi.Quota) (http.Handler, error) {
	refuse := &cybercube.Errors{Problems: problems, Now: a.clock.Now}
	guard, err := a.newGuard(d, refuse, cybercube.Redact)
	if err != nil {
		return nil, err
	}
	set := a.cfg.Cybercube
	cfg := cybercube.Config{
		Services: httpapi.Services{
			Config: httpapi.Config{Callers: a.management.Callers, Idempotency: guard, Errors: refuse, Bodies: bodies},
			Store:  a.store, Engine: a.engine, Intake: a.intake, Clock: a.clock, Log: a.log, TimeScale: d.TimeScale,
		},
		Management:   a.management,
		Commands:     a.commands.runner,
		UnknownTypes: set.UnknownTypes, EventRetention: a.cfg.Retention.Events.Real(), DeadLetterRetention: a.cfg.Retention.DeadLetters.Real(), StallTimeout: d.Timeouts.Write,
	}
	if !d.NoLimits {
		cfg.Limits = cybercube.Limits{
			Creates: set.CreatesPerHour, Updates: set.UpdatesPerHour, Deletes: set.DeletesPerHour, Tests: set.TestsPerHour,
			Replays: set.ReplaysPerHour,
		}
	}
	h, err := cybercube.New(cfg)
	if err != nil {
		return nil, err
	}
	a.warnOfAddresses()
	return a.whenDelivering(h, refuse), nil
}

// warnOfAddresses warns if the published ranges are the default: a receiver that admits only these would reject our
// deliveries.
func (a *App) warnOfAddresses() {
	host, ok := a.servers[0].listener.Addr().(*net.TCPAddr)
	if ok && !host.IP.IsLoopback() && slices.Equal(a.cfg.WebhookIPs, config.Default().WebhookIPs) {
		a.log.Warn("webhook-ips is not set: receivers are told ranges that exist in documentation only", "path", wellknown.AddressesPath)
	}
}

// newGuard returns the idempotency guard of a dialect. It words refusals as the dialect does, and stores answers for
// repeats without secrets.
func (a *App) newGuard(d Dependencies, refuse httpapi.ErrorWriter, redact func([]byte) []byte) (*idempotency.Guard, error) {
	return idempotency.New(idempotency.Config{
		Store: a.store, Ring: a.ring, Problems: refuse, Log: a.log, Now: a.clock.Now,
		Window: a.cfg.IdempotencyWindow.Real(), TimeScale: d.TimeScale, Redact: redact, Decided: a.witness,
	})
}
