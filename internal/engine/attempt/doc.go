// Package attempt makes one request for a delivery and says what its answer means.
//
//	Target (endpoint, policy, profile, secrets opened) ─► Send: render, sign, one request ─► Judge: classify, decide ─► commit.Record
//
// A Target is what an endpoint is at a moment; a Job is a delivery on its way to it. Sending and judging change neither the
// endpoint nor the store: the record that Judge makes says what is to be stored.
package attempt
