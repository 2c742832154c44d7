// Package apply makes a server as files describe it, and writes such files from a server.
//
//	YAML files ─► Load: objects with their places, checked against the API's schemas
//	                │
//	server ─► Read: objects as the API shows them, in pages
//	                │
//	             Plan: create, update, delete ─► Show: the difference
//	                │
//	             Run: PUT with If-Match or If-None-Match, in order of dependence, several at a time
//
// The members of an object are those of the API's PUT document. They are taken from the OpenAPI document, and compared without knowledge
// of what they mean, so that a new member of the API needs no change here. The few members that differ from this are in kind.go: secrets,
// which cannot be read back, members that count only at creation, and defaults.
//
// The package keeps no state of its own: what is done shows no difference, so a run that broke off is resumed by running it again. It never
// deletes what the files do not cover; Plan says what that is.
package apply
