// Package receiver tests the promises of the public package receiver: with live deliveries of the real server over TLS in
// every profile, and under faults, with connections that drop and processes that are killed.
//
// The package contains only tests.
package receiver
