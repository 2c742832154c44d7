// Package cybercube shows the rows of the CYBERCUBE standard for server, sender and operator on the whole product: the real
// app, real stores, real sockets. Everything is done by the standard's own API.
//
//	endpoints and events over the API ─► scripted receivers ─► the clock moved by hand ─► what arrived, what the API says
//
// Time stands still until a test moves it and jitter is none, so that a schedule of 34 hours takes milliseconds and every time
// is exact. The files are named after the parts of the requirement table.
//
// The package holds tests only.
package cybercube
