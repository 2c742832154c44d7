// Package idsconformance tests a running server against the minimum of RFC-WF-0010, section XIII: six tests over HTTP that need
// only its address and an API key, with one verdict each (IDS-TST-7).
//
//	Run ─ read caller and registry ─► six tests, each with its own marks ─► verdicts
//
// It submits probe.touch and probe.delete, whose effect is an event of type ids.probe, and counts effects by listing those
// events instead of trusting the server's answers. It leaves such events and the evidence of its commands behind; a server that
// should not be tested this way does not register the probes.
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

// Config names the server to test.
type Config struct {
	// URL is its address, Key an API key with the scopes ingest, read and audit.
	URL string
	Key string
	Now func() time.Time
	// Client makes the requests. Defaults to one with a timeout of 30 s.
	Client *http.Client
	// Parallel is how many clients send the same command at once. Defaults to 200.
	Parallel int
}

// A Verdict is the result of one test.
type Verdict struct {
	ID     string `json:"id"` // IDS-TST-1
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	// Detail is what the test saw, or the first deviation.
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

// Run runs all tests, one after the other, and reports each verdict. The error says why no test could run.
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

// caller is the identity that the server derives from the key.
type caller struct {
	Tenant string   `json:"tenant_id"`
	Actor  string   `json:"actor_id"`
	Scopes []string `json:"scopes"`
}

// introduce reads the caller, and checks that the server can be tested.
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
