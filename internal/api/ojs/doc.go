// Package ojs serves the HTTP binding of the Open Job Spec's Webhook Delivery extension (urn:ojs:ext:webhooks) over the
// same services as every other API: a subscription is an endpoint of the profile "ojs".
//
//	/ojs/v1/webhooks/subscriptions…  ─► registry: endpoints, secrets; engine: the test request
//	/ojs/v1/webhooks/deliveries…     ─► store: deliveries, attempts; engine: retry
//	POST /ojs/v1/events[/batch]      ─► envelope checked, completed, otherwise kept to the byte ─► engine: accept
//	GET /ojs/v1/events               ─► store: events in order, each as an envelope
//	any error                        ─► {"error":{"code","message","retryable","details","request_id"}}
//
// The document leaves shapes open; what was chosen where it is silent:
//
//   - Members of a request that are not known are ignored, those of a filter are refused: a filter that was not understood would
//     let too much through.
//   - An update replaces each member that is sent as a whole; null takes an optional one away.
//   - Values of custom headers are not shown again, since they often are credentials; header_names tells which there are.
//   - An envelope without id, time or specversion gets them; one without type, source or data is refused.
//   - An envelope's id with its source names the event for as long as it is kept: the same again is answered as the first
//     was, other content under it is a conflict with the code "duplicate".
//   - Batches are {"events":[…]}; each event counts by itself, in one transaction.
//
// The package knows nothing of how a delivery looks on the wire or when it is tried: that is the profile's and the engine's.
package ojs
