// Package ojs serves the HTTP binding of the Open Job Spec's Webhook Delivery extension (urn:ojs:ext:webhooks). It uses the
// same services as every other API: a subscription is an endpoint of the profile "ojs".
//
//	/ojs/v1/webhooks/subscriptions…  ─► management: endpoints, secrets; engine: the test request
//	/ojs/v1/webhooks/deliveries…     ─► store: deliveries, attempts; engine: retry
//	POST /ojs/v1/events[/batch]      ─► envelope checked, completed, otherwise kept to the byte ─► engine: accept
//	GET /ojs/v1/events               ─► store: events in order, each as an envelope
//	any error                        ─► {"error":{"code","message","retryable","details","request_id"}}
//
// The specification leaves some shapes open. This package chooses:
//
//   - Unknown members of a request are ignored. Unknown members of a filter are refused, because a filter that is only partly
//     understood would match too much.
//   - An update replaces each member that it names entirely; null removes an optional member.
//   - Values of custom headers are never shown, since they are often credentials; header_names lists the names.
//   - The server adds a missing id, time or specversion to an envelope. It refuses an envelope without type, source or data.
//   - An envelope's id and source identify the event for as long as it is kept. A repeat gets the first response; other
//     content under the same id and source is a conflict with the code "duplicate".
//   - Batches are {"events":[…]}. All events are stored in one transaction; each event has its own result.
//
// The profile defines how a delivery looks on the wire, and the engine decides when it is sent.
package ojs
