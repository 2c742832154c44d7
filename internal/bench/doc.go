// Package bench measures a whole server from outside, beside two baselines with the same load generator and the same sink, in
// one run:
//
//	raw      generator ─────────────────────────────────────────► sink
//	relay    generator ─► child: in-memory queue, net/http ─────► sink      durable: no
//	godwit   generator ─► child: `godwit serve` on a real store ─► sink      durable: yes
//
// Every event carries a number and the time of its post, so the sink knows which are missing, which came twice and how long
// they took. The server is its own process: its CPU time and memory do not include the generator's.
//
// Generator and sink implement just enough HTTP/1.1 over net.Conn. They run on the same cores as the server and take CPU time
// from it, so they must be cheap.
package bench
