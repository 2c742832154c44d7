// Package search finds events by what stands in them. There is no index of payloads, which every accepted event would have to pay for: a search
// reads the tenant's events, newest first, in chunks of bounded size, and compares bytes.
//
//	search ──► chunk of rows (store.ScanEvents) ──► compare (type, attribute, source, text) ──► hits, complete
//	               ▲                                                                          └─► progress
//	               └── next chunk, until enough hits, no more events, or the bounds of one search
//
// It parses no payload: a text that a producer wrote with JSON escapes is found as it was written.
package search
