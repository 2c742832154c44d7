// Package ui serves the pages of the dashboard (/ui/) and of the customers' portal (/portal/). Their source is in ui/ of the repository; what
// `make ui` builds from it is committed in dist and embedded, so that building the server needs nothing but Go.
//
// The pages are clients of the public API. The package therefore knows no data: it serves files, and it says to the browser what the pages may
// do (policy.go). Every path below /ui/ and /portal/ that is no file gets the page, which shows what the path says.
package ui
