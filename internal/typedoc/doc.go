// Package typedoc reads event types from the documents that teams already have, and writes a catalogue as such documents.
//
//	OpenAPI 3.1, webhooks ─┐                            ┌─► OpenAPI 3.1, webhooks
//	AsyncAPI 3, messages  ─┴─ Read ─► []Type ─ Write… ──┴─► AsyncAPI 3, messages
//
// A Type's schema stands alone: what it referred to elsewhere in the document is in its $defs. References to other documents are
// refused, since nothing is fetched.
//
// xRegistry is not read: its format for messages is still a draft.
package typedoc
