package cybercube

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// maxBody is the largest body that handlers read.
const maxBody = 1 << 20

// Handler is the standard's sample (CCW-SDK-9): it verifies, parses and handles, and answers 200 {"received":true}, 401 with
// the reason, or 500 {"error":"Internal error"}. It does not deduplicate; [Processor.Handler] does.
func (w *Webhooks) Handler(handle func(ctx context.Context, e *Event) error) http.Handler {
	return w.serve(func(ctx context.Context, e *Event) (int, any, error) {
		return http.StatusOK, received{Received: true}, handle(ctx, e)
	})
}

// Handler handles each event once. It answers 200 for a processed event, and 503 with Retry-After for one that is being
// processed, so that the sender retries (CCW-IDM-5). An event without an id is answered 400.
func (p *Processor) Handler(w *Webhooks) http.Handler {
	return w.serve(func(ctx context.Context, e *Event) (int, any, error) {
		result, err := p.Process(context.WithoutCancel(ctx), e)
		switch {
		case errors.Is(err, ErrNoEventID):
			return http.StatusBadRequest, failure{"Event has no id"}, nil
		case err != nil:
			return 0, nil, err
		}
		if result.Status == StatusConcurrent {
			return http.StatusServiceUnavailable, failure{result.Message}, nil
		}
		return http.StatusOK, received{Received: true, EventID: e.ID}, nil
	})
}

type received struct {
	Received bool   `json:"received"`
	EventID  string `json:"event_id,omitempty"`
}

type failure struct {
	Error string `json:"error"`
}

func (w *Webhooks) serve(handle func(context.Context, *Event) (int, any, error)) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost {
			rw.Header().Set("Allow", http.MethodPost)
			answer(rw, http.StatusMethodNotAllowed, failure{"Method not allowed"})
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(rw, req.Body, maxBody))
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			answer(rw, http.StatusRequestEntityTooLarge, failure{"Payload too large"})
			return
		}
		if err != nil {
			answer(rw, http.StatusBadRequest, failure{"Payload did not arrive in full"})
			return
		}
		status, value, err := w.handle(req, body, handle)
		if refused, ok := errors.AsType[*SignatureError](err); ok {
			status, value = http.StatusUnauthorized, failure{refused.Message}
		} else if err != nil {
			status, value = http.StatusInternalServerError, failure{"Internal error"}
		}
		answer(rw, status, value)
	})
}

func (w *Webhooks) handle(req *http.Request, body []byte, handle func(context.Context, *Event) (int, any, error)) (status int, value any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("handle event: panic")
		}
	}()
	event, err := w.ConstructEvent(body, req.Header.Get("X-Webhook-Signature"), req.Header.Get("X-Webhook-Timestamp"))
	if err != nil {
		return 0, nil, err
	}
	return handle(req.Context(), event)
}

func answer(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"Internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
