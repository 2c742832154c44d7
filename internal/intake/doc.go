// Package intake holds the rules for every event from outside, for every entry point: /v1/events and its batches, the Open
// Job Spec and CYBERCUBE APIs, sources at /in, and the command event.publish. The comments call an entry point a door.
//
//	door: parse ─► Event, Producer
//	                 │
//	intake:          ├─ Repeat   how a request that came before is recognised (key or producer's id, fingerprint)
//	                 ├─ Admit    type, reserved types, attributes, size, the tenant's catalogue ─► Admission or a problem
//	                 └─ Submit   ─► engine, in one transaction with the idempotency record ─► Receipt
//	door: render the receipt or the problem in its own shape
//
// A door cannot skip a rule: Submit and Plan take admissions, and only Admit makes them.
//
// Broadcast takes an event for many tenants by the same rules, and judges it once for all tenants that share their rules.
//
// A repeat is recognised before its payload is checked against today's schema: an event that was accepted once stays
// accepted for as long as its key is known.
//
// The types webhook.* and godwit.* are reserved for the server. It passes such events to the engine directly; no door
// accepts them.
//
// The package knows no HTTP routes and renders no responses.
package intake
