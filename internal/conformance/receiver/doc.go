// Package receiver holds the public package receiver to what it promises: against live deliveries of the real server over
// TLS in every profile, and under torture, with connections that drop and processes that are killed.
//
// It has tests only.
package receiver
