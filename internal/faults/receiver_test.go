//go:build unix

package faults

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Requests arrive when they come, however long it takes to find out who sent them: requests that wait to be accepted would seem
// to be of a node that was killed meanwhile, or to have started all at once.
func TestArrivalsDoNotWaitForTheirSenders(t *testing.T) {
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("no table of sockets to search")
	}
	const requests = 3
	searched, found := make(chan struct{}, requests), make(chan struct{})
	h := NewHistory()
	r := StartReceivers(t, h, func() []*Node {
		searched <- struct{}{}
		<-found
		return nil
	})
	var clients sync.WaitGroup
	for range requests {
		clients.Go(func() {
			client := http.Client{Transport: &http.Transport{}} // a connection of its own
			defer client.CloseIdleConnections()
			resp, err := client.Post(r.URL+"/endpoint", "", strings.NewReader("{}"))
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
	}
	for range requests {
		<-searched
	}
	close(found)
	clients.Wait()
	r.Close()
	if n := len(h.Arrivals); n != requests {
		t.Errorf("%d arrivals", n)
	}
}

func TestSocketsOfAConnection(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:8001 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 11 1 0000000000000000 20 4 30 10 -1
   1: 0100007F:8001 0100007F:9002 01 00000000:00000000 00:00000000 00000000     0        0 22 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:9002 0100007F:8001 01 00000000:00000000 00:00000000 00000000     0        0 33 1 0000000000000000 20 4 30 10 -1
`
	if got := sockets(table, 0x8001, 0x9002); !slices.Equal(got, []string{"22"}) {
		t.Errorf("sockets %v", got)
	}
}
