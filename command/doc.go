// Package command executes commands so that each takes effect once, however often it is submitted, and records evidence of
// every decision (RFC-WF-0010, IDS).
//
// The flow of a command:
//
//	Submit ─ parse the envelope ─ find its declaration ─ authorise ─ normalise args ─ derive key and fingerprint
//	   │        (what fails up to here is refused; nothing is kept under the key)
//	   ▼
//	look up the key ─┬─ same fingerprint ──► duplicate: the kept outcome, or "processing"
//	                 ├─ another fingerprint ► conflict
//	                 └─ free ──────────────► reserve (durable, leased), then, when the declaration asks, await confirmation
//	   ▼
//	handler ─ computes an outcome and the effects that belong to it; calls outside go through the ledger
//	   ▼
//	finish ─ effects + outcome + evidence in ONE transaction
//
// Every change of a record is a compare-and-set on its version, made by a store step (Store.Advance). A step that finds
// another version than it expects changes nothing. The atomic check-and-set of a key, the fencing of executors whose lease
// has run out, single-use confirmation and the replay of outcomes all rest on this rule. All stores share one step
// machine, Advance, and differ in their Transaction.
//
// A program that embeds the package provides a Store (package sqlstore, on the program's own database; MemoryStore for
// tests), a Registry with a declaration and a Handler for each command, and a Sealer. It calls Run, then submits commands.
// The examples show the simplest embedding, and each way to shield a call to an external system. docs/commands.md
// describes the state that a crash at each point leaves.
//
// The package cannot undo a call to an external system. Commands that make such calls are of class I3 and name the
// strategy that shields them (see Shielding).
package command
