// Package conformance tests the delivery draft's sender rows on the whole product: the real app, real stores, real sockets.
//
//	play:  scripted receivers ─► endpoints and events over the API ─► the clock moved past the whole retry window ─► stop
//	judge: a subtest a row: what reached the receiver, what the API says of it
//
// Time moves only when a test moves it, so that a schedule of a day takes milliseconds and every gap is exact. All scenarios
// are played before any is checked: when a subtest counts requests, the server has stopped and no more can arrive.
//
// The package contains only tests. Rules that a unit test shows better are tested there.
package conformance
