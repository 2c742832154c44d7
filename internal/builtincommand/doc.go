// Package builtincommand is what Godwit itself can be commanded to do: its own dangerous operations, the publication of events, and commands
// that a tenant's own service executes. Each is a declaration and a handler on the executor of package command, so that it has a
// class, a window, evidence, and a confirmation where it destroys something.
//
//	API or CLI ─► Runner.Run ─► executor ─► handler: plan ─► effects + outcome + evidence in one transaction ─► engine is told
//
// Handlers only plan. What they change is an effect of store's, applied with the outcome or not at all.
package builtincommand
