// Package fastpath stands before net/http's server and answers the requests that come by the thousand, on plain TCP.
//
//	connection ─► a request whose every byte is ordinary, for a hot path? ─► handler, on the connection's goroutine ─┐
//	        ▲          │ no                                                                                        │
//	        │          ▼                                                                                           │
//	        │     net/http gets the connection with all that was read, for good                                    │
//	        └──────────────────────────────────────────────────────────────────────────────────────────────────────┘
//
// net/http watches a connection for its client's leaving by a goroutine of its own for every request, sets four deadlines,
// makes a context and a chunked writer; a small POST that is answered within milliseconds needs none of that. The door saves a
// third of what receiving an event costs.
//
// It is no second HTTP implementation. It serves what it understands to the last byte: HTTP/1.1, the whole header there at
// once and within one buffer, lines ended by CRLF, names that are tokens, values without control characters, one Host, one
// Content-Length in digits, a modest body, and none of the fields that change how a message is framed. All else is net/http's,
// untouched: large, slow, chunked, malformed or hostile requests meet the server they always met.
//
// What a handler behind the door does not get: a context that ends when the client leaves (it ends when the server closes),
// http.Flusher, http.Hijacker, deadlines by http.ResponseController. Hot paths must not need them.
package fastpath
