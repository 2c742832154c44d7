// Package management is what every API does to tenants, API keys and endpoints, so that a rule holds whichever dialect a
// request came in by.
//
//	native, ojs, cybercube ─► Service ─► validate (godwit.FieldError names the member) ─► seal ─► store ─► engine.Changed
//	every request          ─► Authenticate (cached for seconds; no store read on the hot path) ─► Caller
//
// Secrets, header values and credentials are sealed here on their way in and never come out again, but for the one
// answer that issues a secret.
//
// The package speaks no HTTP and knows no wire format of any API. It delivers nothing.
package management
