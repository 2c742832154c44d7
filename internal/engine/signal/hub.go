// Package signal tells other nodes at once what they would otherwise find by polling.
//
//	commit ─► Work(endpoint) ─► collected while a message is being sent ─► store.Signals ─► the other nodes' subscribers
//
// At most one sending is under way, and the next one begins sendPause after it. What is told meanwhile shares it, without repeats.
// So the cost does not grow with the load. Signals are hints and may be lost: Lost says so after a gap.
package signal

import (
	"context"
	"encoding/base64"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Topics of signals.
const (
	work   = "work"   // endpoints with deliveries that wait, or a mask of shards
	leases = "leases" // nodes or leases have changed
)

// maxEndpoints is how many endpoints a message names. With more, it names their shards.
const maxEndpoints = 300

const (
	sendTimeout = 2 * time.Second
	// sendPause follows a sending. A sending wakes a process of the database for every node, and has the owners claim.
	sendPause = 5 * time.Millisecond
)

// A Subscriber gets the signals of other nodes. Its methods must not block.
type Subscriber interface {
	// Work says that deliveries wait for the endpoints.
	Work(endpoints []godwit.EndpointID)
	// WorkIn says that deliveries wait in the shards.
	WorkIn(shards []int)
	// Leases says that nodes or leases have changed.
	Leases()
	// Told passes on a message of any other topic, with the node that sent it.
	Told(node, topic, body string)
	// Lost says that signals may have been lost.
	Lost()
}

// maxMessages bounds the messages of other topics that wait to be sent. Further ones are dropped.
const maxMessages = 1024

// A Hub sends this node's signals and passes on those of others.
type Hub struct {
	store store.Signals
	node  string // this process
	pace  clock.Clock
	log   *slog.Logger
	news  chan struct{}

	mu        sync.Mutex
	endpoints map[godwit.EndpointID]struct{}
	shards    uint64 // mask: endpoints became too many
	leases    bool
	messages  []string // of other topics
}

// NewHub makes a hub for the process that the node's owner name stands for. It pauses by the clock.
func NewHub(s store.Signals, n godwit.Node, pace clock.Clock, log *slog.Logger) *Hub {
	return &Hub{store: s, node: n.Name + "/" + n.Instance, pace: pace, log: log, news: make(chan struct{}, 1), endpoints: map[godwit.EndpointID]struct{}{}}
}

// Work tells the owner of the endpoint's shard that a delivery waits. It does not block.
func (h *Hub) Work(id godwit.EndpointID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endpoints[id] = struct{}{}
	if len(h.endpoints) > maxEndpoints {
		for id := range h.endpoints {
			h.shards |= 1 << id.Shard()
		}
		clear(h.endpoints)
	}
	h.poke()
}

// Leases tells the other nodes to look at nodes and leases. It does not block.
func (h *Hub) Leases() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = true
	h.poke()
}

// Tell sends a message of another topic to all nodes. It does not block.
func (h *Hub) Tell(topic, body string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.messages) < maxMessages {
		h.messages = append(h.messages, h.node+" "+topic+" "+body)
		h.poke()
	}
}

func (h *Hub) poke() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// Run sends and receives until ctx ends.
func (h *Hub) Run(ctx context.Context, to Subscriber) {
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() {
		h.store.Listen(ctx, func(message string) { h.receive(message, to) }, to.Lost)
	})
	for {
		select {
		case <-h.news:
		case <-ctx.Done():
			return
		}
		h.Flush(ctx)
		clock.Wait(ctx, h.pace, sendPause)
	}
}

// Flush sends what has been told.
func (h *Hub) Flush(ctx context.Context) {
	messages := h.take()
	if len(messages) == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if err := h.store.Signal(limited, messages); err != nil && ctx.Err() == nil {
		h.log.Debug("signal not sent; other nodes find the work when they poll", "error", err)
	}
}

// take returns the messages to send.
func (h *Hub) take() (messages []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leases {
		messages = append(messages, h.node+" "+leases)
	}
	if h.shards != 0 {
		messages = append(messages, h.node+" "+work+" shards="+strconv.FormatUint(h.shards, 16))
	}
	if len(h.endpoints) > 0 {
		var b strings.Builder
		b.WriteString(h.node + " " + work)
		for id := range h.endpoints {
			b.WriteByte(' ')
			b.WriteString(base64.RawURLEncoding.EncodeToString(id[:]))
		}
		messages = append(messages, b.String())
		clear(h.endpoints)
	}
	messages = append(messages, h.messages...)
	h.leases, h.shards, h.messages = false, 0, nil
	return messages
}

// receive passes a message on. It ignores this node's own.
func (h *Hub) receive(message string, to Subscriber) {
	node, rest, _ := strings.Cut(message, " ")
	topic, body, _ := strings.Cut(rest, " ")
	if node == h.node {
		return
	}
	switch topic {
	default:
		to.Told(node, topic, body)
	case leases:
		to.Leases()
	case work:
		var endpoints []godwit.EndpointID
		for _, field := range strings.Fields(body) {
			if mask, ok := strings.CutPrefix(field, "shards="); ok {
				to.WorkIn(shardsOf(mask))
				continue
			}
			id, err := base64.RawURLEncoding.DecodeString(field)
			if err == nil && len(id) == len(godwit.EndpointID{}) {
				endpoints = append(endpoints, godwit.EndpointID(id))
			}
		}
		if len(endpoints) > 0 {
			to.Work(endpoints)
		}
	}
}

func shardsOf(text string) (shards []int) {
	mask, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return nil
	}
	for shard := range godwit.Shards {
		if mask&(1<<shard) != 0 {
			shards = append(shards, shard)
		}
	}
	return shards
}
