package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// An Attempt is the record of one effort to deliver an event to an endpoint.
type Attempt struct {
	ID             string     `json:"id"`
	DeliveryID     string     `json:"delivery_id"`
	EventID        string     `json:"event_id"`
	EventType      string     `json:"event_type"` // on the live stream
	EndpointID     string     `json:"endpoint_id"`
	N              int        `json:"n"` // 1 for the first
	Trigger        string     `json:"trigger"`
	StartedAt      time.Time  `json:"started_at"`
	DurationMS     float64    `json:"duration_ms"`
	URL            string     `json:"url"`
	Status         int        `json:"status"`  // 0 if no response arrived
	Outcome        string     `json:"outcome"` // accepted, transient or terminal
	Reason         string     `json:"reason"`
	FailureClass   string     `json:"failure_class"`
	NextAt         *time.Time `json:"next_at"`         // when the next attempt is due
	DeliveryStatus string     `json:"delivery_status"` // on the live stream: the delivery's status after the attempt

	// Raw is the whole record as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// maxSilence is how long a stream may bring nothing. The server sends a heartbeat every 15 seconds, so after three of them are
// missing the server is frozen or out of reach, which the connection itself may never report.
const maxSilence = 50 * time.Second

// ErrSilent reports that a stream has brought nothing, not even a heartbeat, for 50 seconds.
var ErrSilent = errors.New("the server has been silent for too long")

// Attempts follows the attempts of the tenant from now on, each once it is recorded. A reader that falls far behind misses
// some. Close the stream when done.
func (c *Client) Attempts(ctx context.Context) (*AttemptStream, error) {
	resp, err := c.send(ctx, http.MethodGet, "/v1/attempts/stream", http.Header{"Accept": {"text/event-stream"}}, nil)
	if err != nil {
		return nil, err
	}
	return &AttemptStream{body: resp.Body, lines: bufio.NewReader(resp.Body), maxSilence: c.maxSilence}, nil
}

// An AttemptStream is a live feed.
type AttemptStream struct {
	body       io.ReadCloser
	lines      *bufio.Reader
	maxSilence time.Duration
}

// Close ends the stream; a Next that waits returns.
func (s *AttemptStream) Close() error { return s.body.Close() }

// readLine reads a line. It closes the stream if nothing comes for too long.
func (s *AttemptStream) readLine() ([]byte, error) {
	var silent atomic.Bool
	watch := time.AfterFunc(s.maxSilence, func() {
		silent.Store(true)
		s.body.Close()
	})
	defer watch.Stop()
	line, err := s.lines.ReadBytes('\n')
	if err != nil && silent.Load() {
		err = ErrSilent
	}
	return line, err
}

// Next waits for the next attempt. It returns io.EOF when the server has ended the stream, and ErrSilent when the server no longer
// says that it is there.
func (s *AttemptStream) Next() (*Attempt, error) {
	for {
		data, err := s.event()
		if err != nil {
			return nil, err
		}
		if data == nil {
			continue
		}
		a := &Attempt{Raw: data}
		if err := json.Unmarshal(data, a); err != nil {
			return nil, fmt.Errorf("read attempt: %w", err)
		}
		return a, nil
	}
}

// event reads one server-sent event and returns its data; nil if it has none.
func (s *AttemptStream) event() (data []byte, err error) {
	for {
		line, err := s.readLine()
		if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF // the connection ended, not the stream
			}
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return data, nil
		}
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
		}
	}
}
