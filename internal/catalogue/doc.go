// Package catalogue validates events: against each tenant's own event types with their JSON Schemas, and against those of
// the two standards, which are built in.
//
//	tenant's entry ─► Put: compile, fit the example, keep versions ─► store
//	event          ─► Check: entry from a small cache ─► fields that do not fit, by path: data.object.id
//	OJS, CYBERCUBE ─► Standard.Check: the schema of the type, or of any event of that standard
//
// Schemas are JSON Schema draft 2020-12, and format is checked. Tenants write them, so they are bounded in size, in depth
// and in the work that one event can cause. A schema cannot refer to other documents or to itself: nothing is fetched, and
// every check ends.
//
// The package does not decide whether an event is checked against the catalogue; the tenant's setting does.
package catalogue
