// Package follow tells callers the results of events and deliveries, as commits store them.
//
//	Feed       every recorded attempt, for callers that watch
//	Outcomes   the outcomes of one event's deliveries, for callers that wait
//	Watermark  the time before which every event is stored, for callers that read events in order
//
// Delivery never waits for a caller.
package follow
