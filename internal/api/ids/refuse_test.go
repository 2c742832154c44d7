package ids

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/api/httpapi"
)

// Every 503 and 429 tells when to try again.
func TestTemporaryRefusalsSayWhenToTryAgain(t *testing.T) {
	temporary := 0
	for code, status := range statuses {
		w := httptest.NewRecorder()
		if err := refuse(&httpapi.Call{W: w}, &command.Refusal{Code: code}); err != nil {
			t.Fatal(err)
		}
		wanted := status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
		if wanted {
			temporary++
		}
		if got := w.Header().Get("Retry-After"); w.Code != status || (got != "") != wanted {
			t.Errorf("%s: %d, Retry-After %q", code, w.Code, got)
		}
	}
	if temporary < 3 {
		t.Errorf("only %d refusals are temporary", temporary)
	}
}
