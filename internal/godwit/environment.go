package godwit

import "time"

// An Environment is a platform's production, staging, or the like. It owns tenants, the event types that all of them share, and
// the settings of tenants that have none of their own.
//
// Every environment has a home tenant with the same 16 bytes as id. It stands for the environment itself: the shared event types
// are its event types, keys of the environment are its keys, and evidence of what was done to the environment is in its chain. It has no
// endpoints and takes no events.
type Environment struct {
	ID   EnvironmentID
	UID  string // chosen by the caller, unique; names the environment wherever an id does
	Name string
	EnvironmentSettings
	Portal    Portal
	Version   int64 // counts changes, from 1
	CreatedAt time.Time
	UpdatedAt time.Time
	DeletedAt time.Time // zero while it lives
}

// EnvironmentSettings are the settings of an environment, and those that it lends to its tenants.
type EnvironmentSettings struct {
	Live                  bool       `json:"live,omitempty"` // shown to receivers, as CYBERCUBE's livemode
	RequireIdempotencyKey bool       `json:"require_idempotency_key,omitempty"`
	Validation            Validation `json:"event_validation,omitempty"`
	AlertEmails           []string   `json:"alert_emails,omitempty"`
	// Profile and Policy are those of new endpoints that name none. Empty: the server's defaults.
	Profile string          `json:"profile,omitempty"`
	Policy  PolicyOverrides `json:"policy,omitzero"`
	// Signing is that of new endpoints that say nothing, where their profile allows it.
	Signing Signing `json:"signing,omitempty"`
	// MakeTenants lets a request that changes something create the tenant whose uid it names.
	MakeTenants bool `json:"make_tenants,omitempty"`
	// KeepEvents and KeepDeadLetters are how long ended events, with deliveries and attempts, and dead letters are kept, in seconds. 0: as long as
	// the server keeps them.
	KeepEvents      int64 `json:"retention_events_seconds,omitempty"`
	KeepDeadLetters int64 `json:"retention_dead_letters_seconds,omitempty"`
	// Limits of tenants that have none of their own.
	Limits TenantLimits `json:"limits,omitzero"`
}

// MinRetention is the shortest retention that a server or an environment may have.
const MinRetention = time.Hour

// KeptFor returns how long rows are kept: the seconds that an environment chose, or the server's retention if that is shorter or none was chosen.
func KeptFor(seconds int64, server time.Duration) time.Duration {
	if own := time.Duration(seconds) * time.Second; own > 0 && own < server {
		return own
	}
	return server
}

// DefaultEnvironment is the id of the environment that every server has. Tenants belong to it unless they name another.
var DefaultEnvironment = EnvironmentID{6: 0x70, 8: 0x80}

// HomeOf returns the id of an environment's home tenant.
func HomeOf(id EnvironmentID) TenantID { return TenantID(id) }

// KeysOf returns the endpoint id under which the signing keys of an environment are stored. No endpoint has it.
func KeysOf(id EnvironmentID) EndpointID { return EndpointID(id) }

// A Setting is a setting of a tenant that it may have from its environment.
type Setting string

// The settings that an environment lends.
const (
	SettingIdempotencyKey Setting = "require_idempotency_key"
	SettingValidation     Setting = "event_validation"
	SettingAlertEmails    Setting = "alert_emails"
	SettingLimits         Setting = "limits"
)

// LentSettings lists every setting that an environment lends.
var LentSettings = []Setting{SettingIdempotencyKey, SettingValidation, SettingAlertEmails, SettingLimits}

// Lend gives a tenant the settings that it has from its environment.
func (s *EnvironmentSettings) Lend(t *Tenant) {
	t.Test, t.EndpointProfile, t.EndpointPolicy, t.EndpointSigning, t.MakesOthers = !s.Live, s.Profile, s.Policy, s.Signing, s.MakeTenants
	t.KeepEvents, t.KeepDeadLetters = s.KeepEvents, s.KeepDeadLetters
	for _, name := range t.Inherits {
		switch name {
		case SettingIdempotencyKey:
			t.RequireIdempotencyKey = s.RequireIdempotencyKey
		case SettingValidation:
			t.Validation = s.Validation
		case SettingAlertEmails:
			t.AlertEmails = s.AlertEmails
		case SettingLimits:
			t.Limits = s.Limits
		}
	}
}

// WithoutLent returns the tenant as it is stored: without the values that its environment lends.
func (t *Tenant) WithoutLent() *Tenant {
	own := *t
	(&EnvironmentSettings{}).Lend(&own)
	return &own
}
