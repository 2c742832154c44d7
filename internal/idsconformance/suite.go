// Package idsconformance tries a running server against the minimum of RFC-WF-0010, section XIII: six tests over HTTP, by its address and an API
// key alone, one verdict each (IDS-TST-7).
//
//	Run ─ who am I, what may be commanded ─► six tests, each under marks of its own ─► verdicts
//
// It commands probe.touch and probe.delete, whose effect is an event of type ids.probe, and counts effects by listing those events:
// what the server says of itself is not believed. Everything it leaves behind is such events and the evidence of its commands; a
// server that should not be touched this way does not register the probes.
//
// It imports nothing of the server.
package idsconformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Config says which server is tried.
type Config struct {
	// URL is where it is, Key an API key with the scopes ingest, read and audit.
	URL string
	Key string
	Now func() time.Time
	// Client. Defaults to one that gives up on a request after 30 s.
	Client *http.Client
	// Parallel is how many send the same command at once. Defaults to 200.
	Parallel int
}

// A Verdict is what one test came to.
type Verdict struct {
	ID     string `json:"id"` // IDS-TST-1
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	// Detail is what was seen, or the first thing that is wrong.
	Detail string `json:"detail"`
	TookMS int64  `json:"took_ms"`
}

// test is one of the document's.
type test struct {
	id, name string
	run      func(*trial) (string, error)
}

var tests = []test{
	{"IDS-TST-1", "ids_duplicate_no_effect", duplicateNoEffect},
	{"IDS-TST-2", "ids_concurrent_one_execution", concurrentOneExecution},
	{"IDS-TST-3", "ids_replay_after_success", replayAfterSuccess},
	{"IDS-TST-4", "ids_in_progress", inProgress},
	{"IDS-TST-5", "ids_collision", collision},
	{"IDS-TST-6", "ids_confirmation", confirmation},
}

// Run makes all tests, one after the other, and tells each verdict as it comes. The error says why nothing could be tried.
func Run(ctx context.Context, cfg Config, each func(Verdict)) ([]Verdict, error) {
	if cfg.URL == "" || cfg.Key == "" || cfg.Now == nil {
		return nil, errors.New("URL, key and clock are required")
	}
	cfg.URL = strings.TrimRight(cfg.URL, "/")
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64, Proxy: http.ProxyFromEnvironment}}
		defer cfg.Client.CloseIdleConnections()
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = 200
	}
	who, err := introduce(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	var verdicts []Verdict
	for _, t := range tests {
		began := cfg.Now()
		detail, err := t.run(&trial{ctx: ctx, cfg: &cfg, who: who, marks: t.name, began: began})
		if ctx.Err() != nil {
			return verdicts, ctx.Err()
		}
		v := Verdict{ID: t.id, Name: t.name, Passed: err == nil, Detail: detail, TookMS: cfg.Now().Sub(began).Milliseconds()}
		if err != nil {
			v.Detail = err.Error()
		}
		verdicts = append(verdicts, v)
		if each != nil {
			each(v)
		}
	}
	return verdicts, nil
}

// caller is who the key makes us.
type caller struct {
	Tenant string   `json:"tenant_id"`
	Actor  string   `json:"actor_id"`
	Scopes []string `json:"scopes"`
}

// introduce learns who we are, and whether the server can be tried.
func introduce(ctx context.Context, cfg *Config) (*caller, error) {
	var reg struct {
		Caller   caller `json:"caller"`
		Commands []struct {
			Entity string `json:"entity"`
			Action string `json:"action"`
		} `json:"commands"`
	}
	a, err := request(ctx, cfg, http.MethodGet, "/ids/v1/registry", nil)
	switch {
	case err != nil:
		return nil, err
	case a.code == http.StatusUnauthorized:
		return nil, errors.New("the server does not know the API key")
	case a.code != http.StatusOK:
		return nil, fmt.Errorf("GET /ids/v1/registry: %s", a)
	}
	if err := a.decode(&reg); err != nil {
		return nil, err
	}
	for _, action := range []string{"touch", "delete"} {
		known := slices.ContainsFunc(reg.Commands, func(c struct {
			Entity string `json:"entity"`
			Action string `json:"action"`
		}) bool {
			return c.Entity == "probe" && c.Action == action
		})
		if !known {
			return nil, fmt.Errorf("the server has no command probe.%s: start it with --commands-probe", action)
		}
	}
	for _, scope := range []string{"ingest", "read", "audit"} {
		if !slices.Contains(reg.Caller.Scopes, scope) {
			return nil, fmt.Errorf("the API key lacks the scope %s", scope)
		}
	}
	return &reg.Caller, nil
}
