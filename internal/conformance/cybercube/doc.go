// Package cybercube tests the rows of the CYBERCUBE standard for server, sender and operator on the whole product: the real
// app, real stores, real sockets. The tests use only the standard's own API.
//
//	endpoints and events over the API ─► scripted receivers ─► the clock moved by hand ─► what arrived, what the API says
//
// Time moves only when a test moves it, and there is no jitter, so that a schedule of 34 hours takes milliseconds and every
// time is exact. The files are named after the parts of the requirement table.
//
// The package contains only tests.
package cybercube
