package ojs_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// The bodies of concurrent requests are bounded for each tenant, over all APIs.
func TestBodiesUnderWayAreBounded(t *testing.T) {
	r := newRig(t, apptest.Options{})
	var open []net.Conn
	begin := func() { // a body without Content-Length may become a whole batch of 16 MiB
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		fmt.Fprintf(conn, "POST %s/batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
			events, r.Key)
	}
	end := func() {
		for _, conn := range open {
			conn.Close()
		}
	}
	defer end()
	until := func(path string, status int, meanwhile func()) {
		t.Helper()
		patient, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		for {
			got := r.Call(apptest.Call{Path: path, Body: strings.Repeat(" ", 100_000)})
			if got.Status == status {
				return
			}
			if patient.Err() != nil {
				t.Fatalf("%s: still %d, want %d: %s", path, got.Status, status, got.Body)
			}
			meanwhile()
		}
	}
	paths := []string{events, "/api/v1/webhooks/events", "/v1/events"}
	for _, path := range paths {
		until(path, 429, begin)
	}
	end()
	for _, path := range paths {
		until(path, 400, func() {})
	}
}
