// Package source keeps the places where upstreams deliver to us, and what makes us a correct Intermediary there: who an
// upstream is, when it may be answered, what becomes of its key.
//
//	Spec ─► Sources ─► store          validated, credentials sealed
//	Source ─► Gate                    its scheme made ready: verify a request, find its key and its event's type
//	Terms                             what the service description promises; acknowledged by version (EDS-INT-9, EDS-INT-10)
//
// One source is one upstream principal. Its credentials may change, several may be good at once, and the principal stays:
// a rotation does not turn a retry into a new event (EDS-KEY-6).
//
// The package speaks no HTTP by itself and publishes nothing: internal/api/inbound does.
package source
