package stats

import "encoding/binary"

// Counts are what is counted for an endpoint, a tenant, an environment or the server.
type Counts struct {
	Events       int64 // of an endpoint: events for it, which are its deliveries; otherwise events accepted
	Acknowledged int64 // attempts that the receiver acknowledged
	Failed       int64 // other attempts
	Dead         int64 // deliveries that became dead letters, by other causes than the end of their retention
}

// Add adds other counts.
func (c *Counts) Add(o Counts) {
	c.Events += o.Events
	c.Acknowledged += o.Acknowledged
	c.Failed += o.Failed
	c.Dead += o.Dead
}

// Attempts returns the number of attempts, of any outcome.
func (c *Counts) Attempts() int64 { return c.Acknowledged + c.Failed }

func (c *Counts) append(b []byte) []byte {
	for _, n := range [...]int64{c.Events, c.Acknowledged, c.Failed, c.Dead} {
		b = appendNumber(b, n)
	}
	return b
}

func (r *reader) counts() Counts {
	return Counts{Events: r.number(), Acknowledged: r.number(), Failed: r.number(), Dead: r.number()}
}

func appendNumber(b []byte, n int64) []byte { return binary.AppendUvarint(b, uint64(max(n, 0))) }

// A reader decodes numbers. After damaged input it returns zeros, and bad is set.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) fail() { r.rest, r.bad = nil, true }

func (r *reader) number() int64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > 1<<62 {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return int64(n)
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) id() (id [16]byte) {
	copy(id[:], r.take(int64(len(id))))
	return id
}

func (r *reader) take(n int64) []byte {
	if n > int64(len(r.rest)) {
		r.fail()
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}
