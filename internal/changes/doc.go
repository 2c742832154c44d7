// Package changes keeps a node's memory up to date with the configuration that any node stores: endpoints and their secrets,
// API keys, tenants, event types.
//
//	another node ─► change + next config version, in one transaction
//	                                    │
//	group commit: is it still the version by which the receivers were chosen? ─► no: CatchUp, then choose anew
//	authentication, catalogue: was the version confirmed in the last half second? ─► no: CatchUp
//	every quarter of a second, a claim, a hint of another node ──────────────────► CatchUp
//	                                    │
//	CatchUp ─► read the changes since the applied version ─► tell the subscribers ─► the version is applied
//
// A version is applied only after every subscriber has taken the changes up to it. A subscriber that fails leaves the old
// version in place, and the same changes are read again. So nothing depends on a hint that may be lost: hints only make the
// node look earlier.
//
// The package knows neither the engine nor the caches. It does not decide what a change means.
package changes
