// Package problem answers failed requests with RFC 9457 problem details.
//
//	handler ─► error ─► From: which kind is it? ─► Writer: type URL, request id, headers ─► application/problem+json
//
// A Kind is a named error value with a stable code. Its code, status and title never change between releases; its detail is
// for people. An error that is not recognised becomes "internal": its text goes to the log and never to the client.
//
// The package classifies errors by identity, never by their text, and knows no routes.
package problem
