package cybercube

import (
	"net/http"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// maxExports bounds the concurrent exports, because each holds a page of the list in memory.
const maxExports = 16

// export streams every dead letter of an endpoint, one JSON object a line (CCW-DLQ-7). If it fails half-way it closes the
// connection, so that the client does not take a partial export for a complete one.
func (s *server) export(c *httpapi.Call, e *godwit.Endpoint) error {
	select {
	case s.exports <- struct{}{}:
		defer func() { <-s.exports }()
	default:
		return problem.TooManyRequests.With("%d exports are under way", maxExports)
	}
	page := store.Page{Limit: s.part(50)}
	letters, err := s.deadLetters(c, e, page, true)
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
			v, err := s.failure(c.R.Context(), c.Caller.Tenant, e, &letters[i])
			if err != nil {
				s.cutShort(err)
			}
			s.patience(out)
			if _, err := c.W.Write(encode(v)); err != nil {
				return nil // the client has disconnected
			}
		}
		page.After = letters[len(letters)-1].Delivery.ID
		if letters, err = s.deadLetters(c, e, page, true); err != nil {
			s.cutShort(err)
		}
	}
	return nil
}

// patience extends the write deadline by the stall timeout. Sockets use the machine's clock, even where the server's clock
// is a manual one.
func (s *server) patience(out *http.ResponseController) {
	_ = out.SetWriteDeadline(clock.Real{}.Now().Add(s.cfg.StallTimeout)) // test recorders do not support deadlines
}

func (s *server) cutShort(err error) {
	s.cfg.Log.Warn("export of failures cut short", "error", err)
	panic(http.ErrAbortHandler)
}
