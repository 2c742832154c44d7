// Package source manages sources, the inbound addresses of upstreams, and the rules that make Godwit a correct Intermediary:
// how an upstream is authenticated, when it is answered, and how its key is handled.
//
//	Spec ─► Sources ─► store          validated, credentials sealed
//	Source ─► Gate                    its scheme made ready: verify a request, find its key and its event's type
//	Terms                             what the service description promises; acknowledged by version (EDS-INT-9, EDS-INT-10)
//
// One source is one upstream principal. Its credentials may change and several may be valid at once, but the principal stays
// the same: a rotation does not turn a retry into a new event (EDS-KEY-6).
//
// The package serves no HTTP and publishes nothing: internal/api/inbound does.
package source
