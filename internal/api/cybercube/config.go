package cybercube

import (
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/management"
)

// Prefix is the path at which the API is mounted.
const Prefix = "/api/v1/webhooks/"

// Config holds the API's dependencies and settings.
type Config struct {
	httpapi.Services
	// Management changes endpoints. Required.
	Management *management.Service
	// Commands executes the operations that are commands. Required.
	Commands *builtincommand.Runner
	// Limits bound how often management operations may run. The zero value sets no limits.
	Limits Limits
	// UnknownTypes accepts events of well-formed types that the standard does not list (CCW-EVT-25). Defaults to false.
	UnknownTypes bool
	// EventRetention is how long events are kept. Required.
	EventRetention time.Duration
	// DeadLetterRetention is how long dead letters are kept; their expiry time is computed from it. Required.
	DeadLetterRetention time.Duration
	// StallTimeout is how long an export waits for a client that reads nothing before the server closes the connection.
	// Defaults to 90 s.
	StallTimeout time.Duration
}

// New returns the handler. Mount it at Prefix.
func New(cfg Config) (httpapi.Router, error) {
	if cfg.EventRetention <= 0 || cfg.DeadLetterRetention <= 0 {
		return nil, errors.New("cybercube: the retention of events and of dead letters is required")
	}
	if cfg.Commands == nil || cfg.Management == nil {
		return nil, errors.New("cybercube: Commands and Management are required")
	}
	if cfg.StallTimeout <= 0 {
		cfg.StallTimeout = 90 * time.Second
	}
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("cybercube: %w", err)
	}
	cfg.Channel = "cybercube"
	api, err := httpapi.New(cfg.Services.Config)
	if err != nil {
		return nil, err
	}
	limits := newBudgets(&cfg)
	return routes(&cfg, api, newHandlers(&cfg, api, &limits), &limits), nil
}
