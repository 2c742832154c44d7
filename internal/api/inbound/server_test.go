package inbound

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// TestPanicIsAnsweredAndLogged: an upstream gets an answer when a handler panics, and the operator finds the cause in the log.
func TestPanicIsAnsweredAndLogged(t *testing.T) {
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, nil))
	s := &server{recording: newRecording(), cfg: Config{
		Sources:  nil, // finding a source panics
		Problems: &problem.Writer{Log: log}, Clock: clock.NewManual(time.Unix(0, 0)), Log: log, Recorder: silent{}, Bodies: httpapi.NewBodyQuota(),
	}}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Prefix+godwit.NewSourceID(time.Unix(0, 0)).String(), strings.NewReader("{}")))
	if w.Code != http.StatusInternalServerError || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	if !strings.Contains(lines.String(), "panicked") || strings.Contains(w.Body.String(), "panicked") {
		t.Errorf("log: %s\nanswer: %s", lines.String(), w.Body)
	}
}
