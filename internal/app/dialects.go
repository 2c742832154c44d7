package app

import (
	"net/http"

	"github.com/godwit-hq/godwit/internal/api/dialect"
	"github.com/godwit-hq/godwit/internal/api/ojs"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/telemetry"
)

// newOJS makes the handlers of the Open Job Spec.
func (a *App) newOJS(d Dependencies) (http.Handler, error) {
	refuse := &ojs.Errors{Log: a.log}
	guard, err := a.newGuard(d, refuse, ojs.Redact)
	if err != nil {
		return nil, err
	}
	h, err := ojs.New(ojs.Config{
		Store: a.store, Engine: a.engine, Registry: a.registry, Idempotency: guard, Clock: a.clock, Log: a.log,
		MaxBody: int64(a.cfg.MaxBody), Retention: a.cfg.Retention.Events.Real(), Version: telemetry.Build().Version, TimeScale: d.TimeScale,
	})
	if err != nil {
		return nil, err
	}
	return a.whenDelivering(h, refuse), nil
}

// newGuard makes the idempotency guard of a dialect: its refusals are in the dialect's words, and the answers that it keeps
// for repeats are without secrets.
func (a *App) newGuard(d Dependencies, refuse dialect.ErrorWriter, redact func([]byte) []byte) (*idempotency.Guard, error) {
	return idempotency.New(idempotency.Config{
		Store: a.store, Ring: a.ring, Problems: refuse, Log: a.log, Now: a.clock.Now,
		Window: a.cfg.IdempotencyWindow.Real(), TimeScale: d.TimeScale, Redact: redact,
	})
}
