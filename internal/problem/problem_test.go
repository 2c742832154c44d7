package problem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

func write(err error) (*httptest.ResponseRecorder, problem.Problem, string) {
	var log bytes.Buffer
	w := &problem.Writer{Base: "https://godwit.example/", Log: slog.New(slog.NewTextHandler(&log, nil))}
	rec := httptest.NewRecorder()
	rec.Header().Set(problem.RequestIDHeader, "req_1")
	w.Write(rec, httptest.NewRequest("POST", "/v1/x", nil), err)
	var p problem.Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		panic(err)
	}
	return rec, p, log.String()
}

func TestErrorsBecomeProblems(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
		header string
	}{
		"kind":        {problem.NotFound, 404, "not-found", ""},
		"detailed":    {fmt.Errorf("get: %w", problem.Conflict.With("no")), 409, "conflict", ""},
		"not found":   {fmt.Errorf("get: %w", store.ErrNotFound), 404, "not-found", ""},
		"conflict":    {fmt.Errorf("set: %w", store.ErrConflict), 409, "conflict", ""},
		"unavailable": {fmt.Errorf("set: %w", store.ErrUnavailable), 503, "unavailable", "Retry-After"},
		"stopping":    {engine.ErrStopping, 503, "unavailable", "Retry-After"},
		"in progress": {engine.ErrInProgress, 409, "idempotency-in-progress", "Retry-After"},
		"reused":      {engine.ErrKeyReused, 422, "idempotency-key-reused", "Link"},
		"in flight":   {engine.ErrInFlight, 409, "conflict", ""},
		"deadline":    {context.DeadlineExceeded, 503, "unavailable", "Retry-After"},
		"bad id":      {fmt.Errorf("parse: %w", godwit.ErrBadID), 400, "invalid-request", ""},
		"no key":      {problem.Unauthorized, 401, "unauthorized", "WWW-Authenticate"},
		"too many":    {problem.TooManyRequests, 429, "too-many-requests", "Retry-After"},
		"field":       {&godwit.FieldError{Field: "a", Detail: "b"}, 422, "validation-failed", ""},
		"unknown":     {errors.New("boom"), 500, "internal", ""},
		"nil kind":    {errors.Join(errors.New("x"), problem.TooLarge.With("y")), 413, "body-too-large", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec, p, _ := write(c.err)
			if rec.Code != c.status || p.Status != c.status || p.Code != c.code || p.Title == "" || p.RequestID != "req_1" {
				t.Errorf("got %d %+v", rec.Code, p)
			}
			if rec.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("Content-Type is %q", rec.Header().Get("Content-Type"))
			}
			if !strings.HasPrefix(p.Type, "https://godwit.example/docs/") || !strings.HasSuffix(p.Type, "#"+c.code) {
				t.Errorf("type is %q", p.Type)
			}
			if c.header != "" && rec.Header().Get(c.header) == "" {
				t.Errorf("no %s", c.header)
			}
		})
	}
}

func TestFieldsAreAllNamed(t *testing.T) {
	_, p, _ := write(fmt.Errorf("create: %w", errors.Join(
		&godwit.FieldError{Field: "url", Detail: "must be https"}, nil,
		errors.Join(&godwit.FieldError{Field: "patterns[0]", Detail: "must not be empty"}),
	)))
	if len(p.Errors) != 2 || p.Errors[0].Field != "url" || p.Errors[1].Field != "patterns[0]" || p.Detail != "url: must be https; patterns[0]: must not be empty" {
		t.Errorf("got %+v", p)
	}
}

func TestUnknownErrorsShowNothing(t *testing.T) {
	rec, _, log := write(errors.New("password is hunter2"))
	if strings.Contains(rec.Body.String(), "hunter2") {
		t.Errorf("the client is told: %s", rec.Body)
	}
	if !strings.Contains(log, "hunter2") || !strings.Contains(log, "req_1") {
		t.Errorf("the log is not told: %s", log)
	}
	if _, _, log := write(problem.NotFound); log != "" {
		t.Errorf("a client's mistake is logged: %s", log)
	}
}

func TestSharedErrorsAreNotChanged(t *testing.T) {
	shared := problem.Forbidden.With("no")
	write(shared)
	if shared.Type != "" || shared.RequestID != "" || shared.GetHeaders() != nil {
		t.Errorf("a shared value was written to: %+v", shared)
	}
}

func TestKindsAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	form := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, k := range problem.Kinds() {
		if seen[k.Code] || !form.MatchString(k.Code) || k.Status < 400 || k.Title == "" || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("kind %+v", k)
		}
		seen[k.Code] = true
	}
}

func TestRelativeReferences(t *testing.T) {
	w := &problem.Writer{Log: slog.New(slog.DiscardHandler)}
	rec := httptest.NewRecorder()
	w.Write(rec, httptest.NewRequest("POST", "/", nil), problem.KeyMissing)
	if got := rec.Header().Get("Link"); got != `</docs/idempotency>; rel="describedby"; type="text/html"` {
		t.Errorf("Link is %q", got)
	}
}
