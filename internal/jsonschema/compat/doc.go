// Package compat compares two versions of a JSON Schema: would documents of one also be valid by the other?
//
//	Compare(old, new, Backward) ─► inclusion of old in new ─┐
//	Compare(old, new, Forward)  ─► inclusion of new in old ─┴─► places where it does not hold
//
// The comparison never calls an incompatible change compatible, with one exception on purpose: members that a schema does not name
// are not part of what producers and consumers agreed on. A new optional member is therefore compatible, although a document
// might have had a member of that name with another meaning before.
//
// Where it cannot tell, because a keyword such as "not" or "if" changed, it says so and counts the change as incompatible. The schemas
// must be without recursion, as package jsonschema demands.
package compat
