package cybercube

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Bounds of the concurrent exports: each holds a page of the list in memory.
const (
	maxExports      = 4 // of a tenant
	maxExportsOfAll = 16
)

// failureExport streams the dead letters of an endpoint.
type failureExport struct {
	views   *failureViews
	running *httpapi.Quota
	stall   time.Duration // how long a client may read nothing
	log     *slog.Logger
}

// serve streams every dead letter of an endpoint, one JSON object a line (CCW-DLQ-7). If it fails half-way it closes the
// connection, so that the client does not take a partial export for a complete one.
func (x *failureExport) serve(c *httpapi.Call, e *godwit.Endpoint) error {
	if err := x.running.Acquire(c.Tenant(), "exports"); err != nil {
		return err
	}
	defer x.running.Release(c.Tenant(), 1)
	page := store.Page{Limit: x.views.atOnce(50)}
	letters, err := x.views.deadLetters(c, e, page, true)
	if err != nil {
		return err
	}
	h := c.W.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Content-Disposition", `attachment; filename="failures.ndjson"`)
	h.Set("X-Content-Type-Options", "nosniff")
	c.W.WriteHeader(http.StatusOK)
	if c.R.Method == http.MethodHead {
		return nil
	}
	out := http.NewResponseController(c.W)
	for len(letters) > 0 {
		for i := range letters {
			if err := c.Recheck(); err != nil { // the key may have been revoked
				x.abort(err)
			}
			v, err := x.views.failure(c.R.Context(), c.Caller.Tenant, e, &letters[i])
			if err != nil {
				x.abort(err)
			}
			x.extendDeadline(out)
			if _, err := c.W.Write(encode(v)); err != nil {
				return nil // the client has disconnected
			}
		}
		page.After = letters[len(letters)-1].Delivery.ID
		if letters, err = x.views.deadLetters(c, e, page, true); err != nil {
			x.abort(err)
		}
	}
	return nil
}

// extendDeadline gives the client the stall timeout to read what is written next. Sockets use the machine's clock, even
// where the server's clock is a manual one.
func (x *failureExport) extendDeadline(out *http.ResponseController) {
	_ = out.SetWriteDeadline(clock.SocketDeadline(x.stall)) // test recorders do not support deadlines
}

// abort closes the connection.
func (x *failureExport) abort(err error) {
	x.log.Warn("export of failures cut short", "error", err)
	panic(http.ErrAbortHandler)
}
