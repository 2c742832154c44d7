// Package wellknown serves the pages that need no API key: the pages that problem details link to, the
// directory of public signing keys, and where deliveries come from.
//
//	/docs/idempotency                                 how this server treats Idempotency-Key, from its running config
//	/docs/problems                                    every problem code
//	/.well-known/http-message-signatures-directory    Ed25519 public keys that sign deliveries, as a JWK set signed by them
//	/.well-known/webhook-ips                          ranges that deliveries come from, as JSON or text
//	/.well-known/webhook-service                      what upstreams can rely on, as JSON or a page
//
// The pages are made of the same values that the server works by, so they cannot say anything else than it does. They
// carry no script and load nothing.
package wellknown
