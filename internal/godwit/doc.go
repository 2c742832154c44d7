// Package godwit holds the domain types of the product and their pure rules: events, endpoints, deliveries, attempts,
// outcomes, policies, tenants, API keys, secrets, dead letters, idempotency records.
//
// It imports only the standard library and a UUID generator. It does no I/O and reads no clock. Times and random draws for
// schedules are passed in, so that a schedule of a day and a half is tested in a millisecond.
package godwit
