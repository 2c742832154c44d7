package sender

import (
	"bufio"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"sync"
)

const (
	// writeAtOnce is the largest request that is written before anything is read. The system's buffers hold that much whatever
	// the peer does, so that writing does not delay reading an early response (EDS T-39).
	writeAtOnce = 32 << 10
	// readBuffer is the size that net/http uses, which limits a chunked body's trailer by it.
	readBuffer = 4 << 10
)

// A scratch holds the buffers of one request over a link. Later requests reuse it.
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

// encode writes the head of a request to d.out, and the payload as well if both are small: then it is whole. It checks every
// field, so that the result is exactly one request. last asks the peer to close the connection after it.
func (d *scratch) encode(req *http.Request, p *destination, payload []byte, last bool) (whole bool, err error) {
	d.names = d.names[:0]
	for name := range req.Header { // maps.Keys would allocate
		d.names = append(d.names, name)
	}
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
				continue // an empty User-Agent sends none
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
