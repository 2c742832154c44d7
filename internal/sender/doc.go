// Package sender makes the HTTP request of one attempt and reports what it saw.
//
//	Request ─► check URL ─► build hop ─► Prepare (credential, signature) ─► check header
//	        ─► pooled connection, or: resolve ─► guard the address ─► connect ─► TLS
//	        ─► write once ─► read the whole response, within deadline and caps
//	        ─► redirect the caller wants followed? check the target, next hop
//	        ─► godwit.Exchange
//
// Three things are worth knowing before changing anything here.
//
// One attempt is one request on the wire (EDS-ATT-1). net/http resends on its own accord when it thinks that safe, which
// it judges by the request body being nil or having a GetBody; so every request here has a body, an empty one too, and
// never a GetBody. What the sender does itself is to go on over another connection when a pooled one turned out dead
// before a single byte of the request was written: that is no second request.
//
// HTTP/1 connections are wrapped at the level of HTTP bytes (type wire). That is how it is known whether a request left at
// all, whether a status line had arrived when the connection was cut, and how a reply that comes before the request is
// fully sent is still read (EDS T-39).
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
