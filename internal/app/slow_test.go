package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/store"
)

// A client that sends little and slowly loses its connection. Nothing of its request is stored, and other clients are
// served.
func TestSlowClientsAreCutOff(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{Timeouts: app.Timeouts{Header: 50 * time.Millisecond, Read: 100 * time.Millisecond}})
	host := strings.TrimPrefix(srv.URL, "http://")
	for name, said := range map[string]string{
		"nothing":     "",
		"half a head": "POST /v1/events?type=slow HTTP/1.1\r\nHost: x\r\n",
		"half a body": fmt.Sprintf("POST /v1/events?type=slow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", srv.Key),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, said); err != nil {
				t.Fatal(err)
			}
			postUntilServed(t, srv, "/v1/events?type=quick", `{}`)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return // closed without an answer
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusRequestTimeout && resp.StatusCode != http.StatusBadRequest {
				t.Errorf("answered with %d", resp.StatusCode)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("the connection was not closed: %v", err)
			}
		})
	}
	stored, err := srv.App.Store().ListEvents(t.Context(), store.EventFilter{TenantID: srv.Tenant, Type: "slow"}, store.Page{Limit: 10})
	if err != nil || len(stored) != 0 {
		t.Errorf("stored %+v (%v)", stored, err)
	}
}

// postUntilServed posts a body to a server with very short timeouts. The server may cut off the client because the machine
// is slow; the client then tries again.
func postUntilServed(t *testing.T, srv *apptest.Server, path, body string) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for t.Context().Err() == nil {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+srv.Key)
		req.Header.Set("Content-Type", "application/json")
		resp, err := transport.RoundTrip(req)
		if err != nil {
			continue
		}
		resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusAccepted, http.StatusCreated:
			return
		case http.StatusRequestTimeout, http.StatusBadRequest: // the body was not read in time
		default:
			t.Fatalf("POST %s: %d", path, resp.StatusCode)
		}
	}
}

func TestGiantHeaderIsRefused(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	r := srv.Call(apptest.Call{Path: "/v1/events", Header: map[string]string{"X-Giant": strings.Repeat("a", 64<<10)}})
	if r.Status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d", r.Status)
	}
}

// A live stream outlives the read timeout, because its request was read at the start.
func TestStreamOutlivesTheReadTimeout(t *testing.T) {
	apptest.DoubleTimeout(t, func(timeout time.Duration) error { return streamFor(t, timeout) })
}

// streamFor reads a stream until long after the server's timeouts. It returns an error if the stream ends.
func streamFor(t *testing.T, timeout time.Duration) error {
	sink := apptest.NewSink(t)
	srv := apptest.Start(t, apptest.Options{Timeouts: app.Timeouts{Read: timeout, Write: timeout}})
	postUntilServed(t, srv, "/v1/endpoints", `{"url":"`+sink.URL("/")+`"}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/attempts/stream", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+srv.Key)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		return err
	}
	<-time.After(4 * timeout)
	postUntilServed(t, srv, "/v1/events?type=order.paid", `{}`)
	for {
		line, err := lines.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "data:") {
			return err
		}
	}
}
