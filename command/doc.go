// Package command executes commands so that each has its effect once, however often it is submitted, and leaves evidence
// of every decision (RFC-WF-0010, IDS).
//
// The way of a command:
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
// A record changes by compare-and-set on its version, in one kind of store step (Store.Advance): a step that finds another version
// than it expects changes nothing. That one rule carries the atomic check-and-set, the fencing of executors whose lease ran out,
// single-use confirmation and the replay of outcomes. All stores share one step machine, Advance, and differ in their Transaction.
//
// A program that embeds it brings a Store (package sqlstore, on a database of its own; MemoryStore for tests), a Registry with a declaration and a
// Handler for each command, a Sealer, and calls Run; then it submits. The examples show the simplest embedding, and each way of shielding
// a call to an external system. docs/commands.md says what a crash at each point leaves behind.
//
// What the package does not do: it cannot undo a call to an external system. Commands that make such calls are of class
// I3 and name the strategy that shields them (see Shielding).
package command
