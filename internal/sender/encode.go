package sender

import (
	"bufio"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"sync"
)

const (
	// writeAtOnce is the largest request that is written before anything is read. A system takes that much into its own
	// buffers whatever the peer does, so that a reply that comes early is not missed for the writing (EDS T-39).
	writeAtOnce = 32 << 10
	// readBuffer is that of net/http, which bounds a chunked body's trailer by it.
	readBuffer = 4 << 10
)

// A scratch is what one request over a link works with. It is used again by others.
type scratch struct {
	header http.Header
	names  []string
	out    []byte
	in     *bufio.Reader
}

var scratches = sync.Pool{New: func() any { return &scratch{header: http.Header{}, in: bufio.NewReaderSize(nil, readBuffer)} }}

func takeScratch() *scratch { return scratches.Get().(*scratch) }

func (d *scratch) free() {
	clear(d.header)
	clear(d.names)
	d.names = d.names[:0]
	d.in.Reset(nil)
	if cap(d.out) <= 2*writeAtOnce {
		scratches.Put(d)
	}
}

// encode writes the head of a request to d.out, and the payload as well when both are small: then it is whole. It checks
// every field: what it writes is one request and no more. last asks the peer to close the connection after it.
func (d *scratch) encode(req *http.Request, p *place, payload []byte, last bool) (whole bool, err error) {
	d.names = slices.AppendSeq(d.names[:0], maps.Keys(req.Header))
	slices.Sort(d.names)
	out := append(d.out[:0], req.Method...)
	out = append(out, ' ')
	out = append(out, p.uri...)
	out = append(out, " HTTP/1.1\r\nHost: "...)
	out = append(out, p.url.Host...)
	out = append(out, "\r\n"...)
	for _, name := range d.names {
		if err := checkName(name); err != nil {
			return false, err
		}
		for _, value := range req.Header[name] {
			if err := checkValue(name, value); err != nil {
				return false, err
			}
			if name == "User-Agent" && value == "" {
				continue // the way to send none
			}
			out = append(out, name...)
			out = append(out, ": "...)
			out = append(out, textproto.TrimString(value)...)
			out = append(out, "\r\n"...)
		}
	}
	if len(payload) > 0 || req.Method != http.MethodGet && req.Method != http.MethodHead {
		out = append(out, "Content-Length: "...)
		out = strconv.AppendInt(out, int64(len(payload)), 10)
		out = append(out, "\r\n"...)
	}
	if last {
		out = append(out, "Connection: close\r\n"...)
	}
	out = append(out, "\r\n"...)
	if whole = len(out)+len(payload) <= writeAtOnce; whole {
		out = append(out, payload...)
	}
	d.out = out
	return whole, nil
}
