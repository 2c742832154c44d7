// Package apptest boots the whole product for a test: the app on 127.0.0.1:0 over a real store, and a sink that plays
// scripted receivers on real sockets.
//
//	sink := apptest.NewSink(t)
//	sink.Script("/a", apptest.Status(503), apptest.Status(200))
//	srv := apptest.Start(t, apptest.Options{})
//	ep := srv.Endpoint(sink.URL("/a"))
//	ev := srv.Publish("order.paid", `{"n":1}`)
//	srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted)
//	requests := sink.Requests("/a")
//
// Process does the same with the built binary as a child, so that a test can kill it.
//
// Every wait is on a signal (an arrival, a recorded attempt, a line of output) and ends the test with what was seen when
// nothing comes. The package holds no assertions about behaviour: those belong to the tests.
package apptest

import "time"

// patience is how long a wait lasts before it fails the test. It is no part of any result: a passing test never waits it
// out.
const patience = 5 * time.Minute
