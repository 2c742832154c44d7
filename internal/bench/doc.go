// Package bench measures a whole server from outside, beside two baselines that use the same load generator and the same
// sink, in one run:
//
//	raw      generator ─────────────────────────────────────────► sink
//	relay    generator ─► child: in-memory queue, net/http ─────► sink      durable: no
//	godwit   generator ─► child: `godwit serve` on a real store ─► sink      durable: yes
//
// Every event carries a number and the time it was posted, so the sink can tell what is missing, what came twice and how
// long it took. The server is a process of its own: its CPU time and memory are not the generator's.
//
// Generator and sink speak HTTP/1.1 by hand over net.Conn. They run on the same cores as the server, so what they cost is
// taken from it; the less, the truer the ratio. They are no HTTP implementation for anything else.
package bench
