package fastpath

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/difftest"
)

// seeds are streams of bytes with which fuzzing begins.
var seeds = []string{
	request, request + request, strings.ToLower(request), strings.Replace(request, "\r\nX", "\nX", 1),
	strings.Replace(request, "X-Name: n", "Connection: keep-alive", 1), strings.Replace(request, "X-Name: n", "X-Name:\t n \t", 1),
	strings.Replace(request, "a=b", "%zz", 1), strings.Replace(request, "Length: 5", "Length: 005", 1),
	"POST /hot HTTP/1.1\r\n\r\n", "POST  HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
	"POST /hot?# HTTP/1.1\r\nHost: a:b\r\nContent-Length: 0\r\n\r\n",
	request + "\r\n" + request, request + "\r\n\r\n\n" + request, request + "\r\n\r\n\r\n" + request, request + "X", request + "\r\n", request + "\r\nX",
	request + "GET /cold HTTP/1.1\r\nHost: x\r\n\r\n" + request,
	ask("rw") + ask("wr") + ask("W") + ask("lwt"), ask("lw") + ask("lz") + ask("lww"), ask("rLw") + ask("3w") + ask("4tlw"), ask("kwD") + ask("X8w") + ask("x7w") + ask("w"),
	ask("pcr") + ask("Rpc") + ask("cP") + ask("w"), ask("A"), ask("i"), ask("h2hw") + ask("TwH") + ask("eHd"), ask("b") + ask("D"),
	strings.Replace(ask("rw"), "Length: 5", "Length: 50", 1), strings.Replace(ask("w"), "Length: 5", "Length: 50", 1),
	strings.Replace(ask("cw"), "Length: 5", "Length: 50", 1), strings.Replace(ask("xw"), "Length: 5", "Length: 50", 1),
}

// ask is a request that has the handler do what the letters say.
func ask(letters string) string { return strings.Replace(request, "a=b", letters, 1) }

// FuzzServer compares the fast path with net/http's server, on one connection with any stream of bytes, pipelined requests
// included: each stream is handed to net/http, or answered as net/http answers it.
func FuzzServer(f *testing.F) {
	for _, text := range seeds {
		f.Add([]byte(text), uint16(4096))
		f.Add([]byte(text), uint16(7))
	}
	w := newTwins(f)
	f.Fuzz(func(t *testing.T, text []byte, piece uint16) {
		if len(text) > 16<<10 {
			return
		}
		if err := w.compare(text, int(piece)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDifferential is FuzzServer with a generator of its own, for long runs without the cost of coverage.
func TestDifferential(t *testing.T) {
	w := newTwins(t)
	difftest.Run(t, func(r *rand.Rand) error {
		text := generate(r)
		piece := len(text)
		if r.IntN(4) == 0 {
			piece = 1 + r.IntN(200)
		}
		return w.compare(text, piece)
	})
}

// tokens are inserted into streams.
var tokens = []string{
	"\r\n", "\n", "\r", "\r\n\r\n", " ", "\t", ":", "\x00", "\x7f", "\xff", "?", "#", "%", "/", "HTTP/1.0", "HTTP/1.1", "POST ", "GET ", "0", "5", "-1", "+5",
	"Host: y\r\n", "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n", "Expect: 100-continue\r\n", ",", "chunked", "close",
}

// fields are header fields of generated requests.
var fields = []string{
	"X-Name: n", "x-name: other", "Accept: */*", "Accept:  application/json\t", "User-Agent: u", "Connection: keep-alive", "Connection: Keep-Alive",
	"Authorization: Bearer key", "Idempotency-Key: \"k\"", "Content-Type: application/json", "Content-Encoding: identity", "X-Latin: \xe9", "Empty:", "Cookie: a=b; c=d",
	"Connection: close", "Content-Length: 5", "Host: other", "Transfer-Encoding: chunked", "Expect: 100-continue", "Pragma: no-cache", "Upgrade: h2c", "Bad Name: x", "X-Fold: a\r\n b",
}

// generate makes a stream of one to four requests, most of them ordinary, and changes some bytes of every second stream.
func generate(r *rand.Rand) []byte {
	text := make([]byte, 0, 1024)
	for range 1 + r.IntN(4) {
		if r.IntN(8) == 0 {
			text = append(text, difftest.Pick(r, tokens)...)
		}
		text = appendRequest(r, text)
	}
	if r.IntN(2) == 0 {
		return difftest.Mutate(r, text, tokens)
	}
	return text
}

func appendRequest(r *rand.Rand, text []byte) []byte {
	method, path := "POST", "/hot"
	if r.IntN(32) == 0 {
		method = difftest.Pick(r, []string{"GET", "PUT", "post", "HEAD", "OPTIONS"})
	}
	if r.IntN(32) == 0 {
		path = difftest.Pick(r, []string{"/cold", "/hot/", "//hot", "*", "http://x/hot", "/%68ot", ""})
	}
	text = append(append(append(text, method...), ' '), path...)
	text = append(text, '?')
	for range r.IntN(6) {
		letters := ops
		switch n := r.IntN(256); {
		case n == 0:
			letters = panics
		case n < 32:
			letters = statuses
		}
		text = append(text, letters[r.IntN(len(letters))])
	}
	text = append(text, " HTTP/1.1\r\nHost: x.test\r\n"...)
	for range r.IntN(4) {
		common := len(fields) - 9
		if r.IntN(16) == 0 {
			common = len(fields)
		}
		text = append(append(text, fields[r.IntN(common)]...), "\r\n"...)
	}
	body := r.IntN(40)
	length := body
	if r.IntN(16) == 0 {
		length += r.IntN(9) - 4
	}
	text = fmt.Appendf(text, "Content-Length: %d\r\n\r\n", length)
	for range body {
		text = append(text, "abcdefgh POST/hot\r\n:?"[r.IntN(21)])
	}
	return text
}
