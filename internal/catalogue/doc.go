// Package catalogue knows what events look like: each tenant's own event types with their JSON Schemas, and those of the
// two standards, which are built in.
//
//	tenant's entry ─► Put: compile, fit the example, keep versions ─► store
//	event          ─► Check: entry from a small cache ─► fields that do not fit, by path: data.object.id
//	OJS, CYBERCUBE ─► Standard.Check: the schema of the type, or of any event of that standard
//
// Schemas are JSON Schema draft 2020-12, and format is checked. They come from tenants, so they are bounded: in size, in depth, in
// how much work they can be to one event. They refer to nothing outside themselves, and not to themselves: nothing is ever
// fetched, and no event takes for ever.
//
// The package does not decide whether an event is held against the catalogue; tenants do, by their setting.
package catalogue
