// Package attempt makes one request for a delivery and judges its answer.
//
//	Target (endpoint, policy, profile, secrets opened) ─► Send: render, sign, one request ─► Judge: classify, decide ─► commit.Record
//
// A Target is a snapshot of an endpoint; a Job is a delivery to it. Sending and judging change neither the endpoint nor the
// store: the record that Judge makes says what to store.
package attempt
