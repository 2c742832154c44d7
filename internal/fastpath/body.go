package fastpath

import (
	"io"
	"net/http"
	"time"
)

// maxBody is the longest body of a request that the fast path serves. The server reads a body to its end even if the handler
// does not, so that the connection can be used again; only a short body is worth that.
const maxBody = 64 << 10

// body is the body of the current request. It behaves as that of net/http: the last bytes come with io.EOF, and a body that
// ends early returns io.ErrUnexpectedEOF once.
type body struct {
	conn     *conn
	left     int64
	ended    bool // io.EOF or io.ErrUnexpectedEOF was returned
	closed   bool
	deadline bool // the deadline for the body was set
}

func (b *body) Read(p []byte) (int, error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.read(p)
}

func (b *body) read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	if !b.deadline && int64(b.conn.br.Buffered()) < b.left {
		b.deadline = true
		_ = b.conn.tcp.SetReadDeadline(time.Now().Add(b.conn.server.cfg.Read))
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.conn.br.Read(p)
	b.left -= int64(n)
	switch {
	case b.left == 0:
		err = io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	default:
		return n, err
	}
	b.ended = true
	return n, err
}

// Close reads the rest of the body.
func (b *body) Close() error {
	if b.closed {
		return nil
	}
	err := b.discard()
	b.closed = true
	return err
}

// discard reads the rest of the body, whether or not it was closed.
func (b *body) discard() error {
	if b.ended {
		return nil
	}
	_, err := io.Copy(io.Discard, readerFunc(b.read))
	return err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
