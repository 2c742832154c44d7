// Package builtincommand holds the commands that the server registers itself: its dangerous operations, the publication of events,
// and commands that a tenant's own service executes. Each is a declaration and a handler for the executor of package command, and
// so has a class, a window, evidence, and a confirmation if it destroys something.
//
//	/ids/v1    ─► executor ─► handler: decode args ─┐
//	other APIs ─► Runner ─► executor ───────────────┴─► planner ─► effects + outcome + evidence in one transaction ─► engine
//
// A planner changes nothing. It returns effects of package store, which are applied together with the outcome or not at
// all. The Runner submits commands for the other APIs: it passes Go values to the planner, and the command has the same
// key, record and evidence as over /ids/v1.
package builtincommand
