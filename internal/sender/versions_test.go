package sender

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// One receiver, once over HTTP/1.1 and once over HTTP/2: what decides about a delivery is the same.
func TestVersionsAgree(t *testing.T) {
	trace.Covers(t, "EDS-VER-1")
	type seen struct {
		status        int
		body          string
		failed, sent  bool
		timeout       bool
		requestsSoFar int
	}
	behaviours := []string{"abort", "abort-in-body", "stall", "early-hints"}
	for status := 200; status < 600; status += 7 {
		behaviours = append(behaviours, strconv.Itoa(status))
	}
	run := func(proto string) (all []seen) {
		var requests atomic.Int32
		stalled := make(chan struct{}, 1)
		srv := &http.Server{
			TLSConfig: serverTLS(proto),
			ErrorLog:  log.New(io.Discard, "", 0),
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if r.URL.Path == "/stall" {
					stalled <- struct{}{}
				}
				io.Copy(io.Discard, r.Body)
				behave(w, r)
			}),
		}
		if proto == "http/1.1" {
			srv.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
		}
		ln := must(net.Listen("tcp", "127.0.0.1:0"))
		done := make(chan struct{})
		go func() { defer close(done); srv.ServeTLS(ln, "", "") }()
		t.Cleanup(func() { srv.Close(); <-done })
		s := newSender(t)
		for _, b := range behaviours {
			r := post("https://" + ln.Addr().String() + "/" + b)
			var x godwit.Exchange
			if b == "stall" {
				x = sendAndExpire(s, r)
				<-stalled // the handler may start after the deadline
			} else {
				x = send(s, r)
			}
			if want := map[string]string{"http/1.1": "HTTP/1.1", "h2": "HTTP/2.0"}[proto]; x.Proto != want {
				t.Fatalf("%s: went over %q", b, x.Proto)
			}
			got := seen{status: x.Status, body: string(x.Body), requestsSoFar: int(requests.Load())}
			if f := x.Failure; f != nil {
				got.failed, got.sent, got.timeout = true, f.Sent, f.Kind == "timeout"
			}
			all = append(all, got)
		}
		return all
	}
	one, two := run("http/1.1"), run("h2")
	for i, b := range behaviours {
		if one[i] != two[i] {
			t.Errorf("%s: HTTP/1.1 %+v, HTTP/2 %+v", b, one[i], two[i])
		}
	}
}

func behave(w http.ResponseWriter, r *http.Request) {
	switch b := r.URL.Path[1:]; b {
	case "abort":
		panic(http.ErrAbortHandler)
	case "abort-in-body":
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "part")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case "stall":
		<-r.Context().Done()
	case "early-hints":
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
	default:
		status, _ := strconv.Atoi(b)
		w.WriteHeader(status)
		if status != http.StatusNoContent && status != http.StatusNotModified {
			fmt.Fprintf(w, "reply %d", status)
		}
	}
}
