// Package app wires everything, and is the only package that does.
//
//	config ─► key ring ─► store ─► sender ─► engine ─► management ─► APIs ─► HTTP server
//	                                          └─► metrics
//
//	start   listen, then deliver; /readyz turns 200 once the store takes writes and the engine has started
//	stop    /readyz turns 503 ─► requests are answered for the stop delay ─► ingest answers 503 ─► the engine drains ─► the server closes ─► the store closes
//
// Each service is a Run(ctx) error; the first that ends stops the process.
//
// Below this package, every time that is stored, or that decides when something is due, comes from a clock that is passed in.
// The machine's own clock is read only for the deadlines of connections and for pauses between transactions.
package app
