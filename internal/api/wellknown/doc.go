// Package wellknown serves the pages that need no API key: the pages that problem details link to, the directory of public
// signing keys, and the addresses that deliveries come from.
//
//	/docs/idempotency                                 how this server treats Idempotency-Key, from its running config
//	/docs/problems                                    every problem code
//	/.well-known/http-message-signatures-directory    Ed25519 public keys that sign deliveries, as a JWK set signed by them
//	/.well-known/webhook-ips                          ranges that deliveries come from, as JSON or text
//	/.well-known/webhook-service                      what upstreams can rely on, as JSON or a page
//
// The pages are rendered from the same values that the server uses, so they always agree with it. They contain no scripts
// and load no other resources.
package wellknown
