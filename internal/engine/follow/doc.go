// Package follow tells callers what became of events and deliveries, from the commits that store it.
//
//	Feed       every recorded attempt, to callers that watch
//	Outcomes   the outcome of one event's deliveries, to callers that wait for it
//	Watermark  the time before which every event is stored, to callers that read events in order
//
// Delivery never waits for a caller.
package follow
