// Package intake holds the rules for every event that comes in from outside, whichever door it comes by: /v1/events and
// its batches, the Open Job Spec and CYBERCUBE APIs, sources at /in, the command event.publish.
//
//	door: parse ─► Event, Producer
//	                 │
//	intake:          ├─ Repeat   how a request that came before is recognised (key or producer's id, fingerprint)
//	                 ├─ Admit    type, reserved types, attributes, size, the tenant's catalogue ─► Admission or a problem
//	                 └─ Submit   ─► engine, in one transaction with the idempotency record ─► Receipt
//	door: render the receipt or the problem in its own shape
//
// A door cannot leave a rule out: Submit and Plan take admissions, and only Admit makes them.
//
// A repeat is answered before its payload is judged by the schema that is in force today: what was accepted once stays
// accepted for as long as its key is known.
//
// The types webhook.* and godwit.* are the server's own. Its own senders give them to the engine directly; no door does.
//
// The package knows no HTTP routes and renders no answer.
package intake
