// Package sender makes the HTTP request of one attempt and reports the result.
//
//	Request ─► check URL ─► build hop ─► Prepare (credential, signature) ─► check header
//	        ─► idle connection, or: resolve ─► guard the address ─► connect ─► TLS
//	        ─► write once ─► read the whole response, within deadline and caps
//	        ─► redirect the caller wants followed? check the target, next hop
//	        ─► godwit.Exchange
//
// A hop takes one of two ways. HTTP/1.1, the common case, uses a link: a connection that the attempt's own goroutine writes and
// reads, with net/http's parser for the response. HTTP/2 and requests through an egress proxy use net/http's transport. The first
// connection to a receiver shows which version it speaks. If that is HTTP/2, the sender hands the connection to net/http and
// remembers the origin.
//
// Know these points before you change the package:
//
// One attempt is one request on the wire (EDS-ATT-1). The sender uses another connection only if an idle one was dead before a
// byte of the request was written; that is not a second request. To find dead links, the sender checks before it writes whether
// anything has arrived on them, without waiting. net/http resends a request by itself if its body is nil or has a GetBody; so
// every request it gets here has a body, even an empty one, and no GetBody.
//
// The sender knows of every request whether it was sent, and whether a status line had arrived when the connection was cut. It
// reads a response that comes before the request is fully sent (EDS T-39). A link sees all that; HTTP/1 connections of net/http are
// wrapped at the level of HTTP bytes for it (type wire).
//
// An attempt over a link needs only the connection's deadline, its own goroutine and a reused scratch. It costs half the CPU time
// of one through net/http.
//
// A link reads a response as net/http's client does; FuzzLink compares both for any bytes. The differences are on purpose: 101 is a
// failure of the attempt, since nothing asked to switch protocols; and a connection is not kept after 421, after a body over the
// limit, or if more has arrived on it than the response.
//
// The address guard checks the address about to be dialled, on every connection. So it also catches a name that becomes private
// after registration, and a redirect to a private one (EDS-SEC-AZN-3). With an egress proxy the guard cannot see the address: it
// refuses only literal addresses, and the proxy must refuse private ones. The guard does not check the proxy's own address, which
// the operator chose.
//
// The package does not classify outcomes, retry, or know tenants and stores. It logs nothing. But if a receiver sends more bytes than
// a response has, net/http's client quotes them to the standard logger, and a receiver could put our own payload there. So the
// program must keep the standard logger's output out of its logs.
package sender
