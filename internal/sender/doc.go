// Package sender makes the HTTP request of one attempt and reports what it saw.
//
//	Request ─► check URL ─► build hop ─► Prepare (credential, signature) ─► check header
//	        ─► idle connection, or: resolve ─► guard the address ─► connect ─► TLS
//	        ─► write once ─► read the whole response, within deadline and caps
//	        ─► redirect the caller wants followed? check the target, next hop
//	        ─► godwit.Exchange
//
// A hop goes one of two ways. HTTP/1.1, the ordinary case, goes over a link: a connection of our own, written and read by the
// goroutine of the attempt, with net/http's parser for the response. HTTP/2, and whatever goes through an egress proxy, goes
// through net/http's transport. Which version a receiver speaks is known when the first connection to it has been made; if
// that is HTTP/2, the connection is handed over and the origin remembered.
//
// Four things are worth knowing before changing anything here.
//
// One attempt is one request on the wire (EDS-ATT-1). What the sender does itself is to go on over another connection when an
// idle one turned out dead before a single byte of the request was written: that is no second request. To find such ones
// out, an idle link is asked, without waiting, whether anything has arrived on it, before it is written to. net/http resends on
// its own accord when it thinks that safe, which it judges by the request body being nil or having a GetBody; so every
// request it gets here has a body, an empty one too, and never a GetBody.
//
// It is known of every request whether it left at all, and whether a status line had arrived when the connection was cut; and
// a reply that comes before the request is fully sent is still read (EDS T-39). A link sees that for itself; HTTP/1 connections
// of net/http are wrapped at the level of HTTP bytes for it (type wire).
//
// An attempt over a link needs no timer but the connection's deadline, no goroutine but its own, and works on a scratch that is
// used again: it costs half the CPU time of one through net/http.
//
// A link reads a response as net/http's client does; FuzzLink holds both to that for any bytes. The differences are on purpose:
// 101 is a failure of the attempt, since nothing asked to switch; and a connection is not kept after 421, after a body over the
// cap, or if more has arrived on it than the response.
//
// The address guard works on the address about to be dialled, on every connection, so a name that turns private after
// registration, and a redirect to one that always was, meet it alike (EDS-SEC-AZN-3). With an egress proxy the proxy
// resolves names and connects, so the guard cannot see the address: it then refuses literal addresses alone, and the proxy
// has to refuse private ones. The proxy's own address is the operator's choice and is not guarded.
//
// The package does not classify outcomes, retry, or know tenants and stores. It logs nothing; but net/http's client does, to
// the standard logger, and quotes the receiver, when more bytes come than a response has. A receiver can put our own payload
// there. So the program must not let the standard logger's output reach its logs.
package sender
