// Package godwit holds the nouns of the product and their pure rules: events, endpoints, deliveries, attempts, outcomes,
// policies, tenants, API keys, secrets, dead letters, idempotency records.
//
// It imports the standard library and a UUID generator alone. It does no I/O, reads no clock and draws no randomness of
// its own: both are passed in, so that a schedule of a day and a half is tested in a millisecond.
package godwit
