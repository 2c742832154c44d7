package ojs

import (
	"net/http"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// The versions that this API implements.
const (
	extensionURI     = "urn:ojs:ext:webhooks"
	extensionVersion = "1.0.0-rc.1"
)

type manifest struct {
	OJSVersion     string `json:"ojs_version"`
	SpecVersion    string `json:"specversion"` // version of the event envelope
	Implementation struct {
		Name     string `json:"name"`
		Version  string `json:"version,omitempty"`
		Language string `json:"language"`
	} `json:"implementation"`
	// ConformanceLevel is 0, the lowest that the binding allows: levels describe job systems, and Godwit is not one.
	ConformanceLevel int      `json:"conformance_level"`
	Protocols        []string `json:"protocols"`
	Backend          string   `json:"backend"`
	Extensions       struct {
		Official []extension `json:"official"`
	} `json:"extensions"`
	Capabilities map[string]bool   `json:"capabilities"`
	Endpoints    map[string]string `json:"endpoints"`
	Limits       map[string]int64  `json:"limits"`
}

type extension struct {
	Name    string `json:"name"`
	URI     string `json:"uri"`
	Version string `json:"version"`
}

// manifest serves the list of this server's features, without an API key (OJS-CON-9).
func (s *server) manifest() http.Handler {
	var m manifest
	m.OJSVersion, m.SpecVersion = specVersion, specVersion
	m.Implementation.Name, m.Implementation.Version, m.Implementation.Language = "godwit", s.cfg.Version, "go"
	m.Protocols, m.Backend = []string{"http"}, s.cfg.Backend
	m.Extensions.Official = []extension{{Name: "webhooks", URI: extensionURI, Version: extensionVersion}}
	m.Capabilities = map[string]bool{
		"attribute_filters": true, "wildcards": true, "secret_rotation": true, "delivery_log": true, "delivery_retry": true,
		"test_endpoint": true, "custom_headers": true, "event_polling": true, "event_ingest": true,
		"event_batching": false, // batching of deliveries (OT-9)
	}
	m.Endpoints = map[string]string{
		"subscriptions": subscriptionsPath, "deliveries": deliveriesPath, "events": eventsPath, "events_batch": eventsPath + "/batch",
	}
	m.Limits = map[string]int64{
		"max_event_bytes": s.cfg.Intake.MaxPayload(), "max_batch_bytes": s.cfg.MaxBatchBody, "max_batch_events": godwit.MaxEventsPerBatch,
		"max_page": maxLimit, "max_poll_events": maxPoll,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, m) })
}
