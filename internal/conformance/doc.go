// Package conformance shows the delivery draft's sender rows on the whole product: the real app, real stores, real sockets.
//
//	play:  scripted receivers ─► endpoints and events over the API ─► the clock moved past the whole retry window ─► stop
//	judge: a subtest a row: what reached the receiver, what the API says of it
//
// Time stands still until a test moves it, so that a schedule of a day takes milliseconds and every gap is exact. Everything
// is played before anything is judged: when a subtest counts requests, the server has been stopped and no more can come.
//
// The package holds tests only. Rules that a unit test shows better are shown there.
package conformance
