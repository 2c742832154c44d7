// Package management changes tenants, API keys and endpoints for every API, so that all APIs apply the same rules.
//
//	native, ojs, cybercube ─► a part of Service ─► validate (godwit.FieldError names the member) ─► seal ─► store ─► engine.Changed
//	every request          ─► Callers: Authenticate (cached for seconds; no store read on the hot path) ─► Caller
//
// The package seals secrets, header values and credentials before they are stored. Only the answer that issues a secret shows it.
//
// Rotating a secret, deleting an endpoint and deleting a tenant are commands, which store the change together with its outcome.
// This package returns the change to store (PlanDelete, PlanRotation) and reacts once it is stored (Deleted, Changed); package
// builtincommand stores it with its evidence.
//
// The package speaks no HTTP and knows no wire format of any API. It delivers nothing.
package management
