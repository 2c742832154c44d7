// Package apptest starts the whole product for a test: the app on 127.0.0.1:0 with a real store, and a sink that plays
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
// Process does the same with the built binary as a child process, so that a test can kill it.
//
// Every wait is for a signal (an arrival, a recorded attempt, a line of output). If the signal does not come, the wait fails
// the test and prints what it saw. The package makes no assertions about behaviour: those belong to the tests.
package apptest

import "time"

// waitLimit bounds a wait. It affects no result: a passing test never reaches it.
const waitLimit = 5 * time.Minute
