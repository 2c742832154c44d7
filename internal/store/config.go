package store

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Configuration tells a node what other nodes have changed: endpoints and their secrets, API keys, tenants and event types.
// Every transaction that changes them raises the config version. The order of versions is the order of commits: a read that
// starts after a version was seen sees all changes up to it.
type Configuration interface {
	// ConfigVersion returns the current version. A store that only one process serves from returns 0 always.
	ConfigVersion(ctx context.Context) (int64, error)
	// ConfigChanges lists what has changed since a version.
	ConfigChanges(ctx context.Context, since int64) (*ConfigChanges, error)
}

// ConfigChanges lists the changes after a version, up to Version.
type ConfigChanges struct {
	Version int64
	List    []ConfigChange // in the order of their commits
	// Unknown says that the store cannot list the changes: they are too many, or the database was restored and has no such
	// version. Any object may have changed, or be gone.
	Unknown bool
}

// A ConfigChange names an object that was created, changed or deleted.
type ConfigChange struct {
	Kind     ConfigKind
	TenantID godwit.TenantID
	ID       [16]byte // of the endpoint, key, tenant, environment or session
	Name     string   // of the event type
}

// ConfigKind is the kind of a changed object.
type ConfigKind string

// Kinds of changed objects. A change of a secret is one of its endpoint.
const (
	ConfigEndpoint  ConfigKind = "endpoint"
	ConfigKey       ConfigKind = "key"
	ConfigTenant    ConfigKind = "tenant"
	ConfigEventType ConfigKind = "event_type"
	// ConfigEnvironment changes what its tenants have from it.
	ConfigEnvironment ConfigKind = "environment"
	// ConfigSession is a session that has ended.
	ConfigSession ConfigKind = "session"
)

// ConfigDistance returns the number of changes between two versions: a version counts in its upper 48 bits, the lower ones tell
// databases apart.
func ConfigDistance(from, to int64) int64 { return to>>16 - from>>16 }
