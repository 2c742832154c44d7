// Package fastpath serves the most frequent requests on plain TCP without net/http's server, and hands every other connection
// to net/http.
//
//	connection ─► ordinary request for a hot path? ─ yes ─► handler, on the connection's goroutine ─► next request
//	                      │ no
//	                      ▼
//	              net/http gets the connection, with every byte that was read, and keeps it
//
// net/http starts a goroutine for every request to watch for the client's departure, sets four deadlines, and makes a context
// and a chunked writer. A small POST that is answered within milliseconds needs none of these. The fast path saves a third of
// the cost of receiving an event.
//
// The package is not a second HTTP implementation. It serves a request only if it understands every byte of the header:
// HTTP/1.1, the whole header received at once and within one buffer, lines that end in CRLF, names that are tokens, values
// without control characters, one Host, one Content-Length in digits, a body of at most 64 KiB, and no field that changes the
// framing of a message. Large, slow, chunked, malformed and hostile requests go to net/http.
//
// The answers are those of net/http, byte for byte; FuzzServer holds both to that for any stream of bytes. These are the only
// differences, and handlers of hot paths must not depend on them:
//   - The request's context is Config.Context. It does not end when the client leaves, and holds no values of net/http.
//   - The response is sent whole after the handler has returned. So there is no http.Flusher and no http.Hijacker,
//     http.ResponseController sets no deadlines, and a handler that panics has sent nothing.
//   - A response over 2 KiB has a Content-Length; net/http sends it in chunks if the handler did not set one.
//   - A handler can read the request's body after it has begun to write; net/http closes the body after 2 KiB.
//   - Responses with a 1xx status are not sent, and a handler's Transfer-Encoding and trailers are left out.
//   - http.MaxBytesReader does not close the connection.
package fastpath
