// Package filter decides by an event's content whether an endpoint gets it. A filter is a JSON object over the members type, attributes,
// headers, source and body of an event:
//
//	{"body": {"amount": {"$gte": 100}, "tags": "urgent"}}
//
//	Compile ─► Filter, once for each version of an endpoint
//	Open(event) ─► Document, once for each event; it parses the body when the first filter looks at it
//	Filter.Match(document) ─► whether the event passes; Filter.Explain names the condition that did not
//
// A filter cannot fail while it runs: a value of another type than the condition expects, a missing member and a body that is not JSON
// satisfy no condition that expects a value. Its cost is bounded by MaxSteps for each event, beyond which the event does not pass; regular expressions are
// RE2. docs/filters.md describes the rules to users.
package filter
