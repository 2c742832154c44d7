package store

import "context"

// Signals passes short messages between the nodes of a store. They are hints: each may be lost, and a node must find what it
// needs without them, if later.
type Signals interface {
	// Signal sends messages to all nodes, this one included. One has at most MaxSignal bytes.
	Signal(ctx context.Context, messages []string) error
	// Listen passes messages to received until ctx ends. It calls lost whenever it begins to listen: messages before that are
	// lost.
	Listen(ctx context.Context, received func(message string), lost func())
}

// MaxSignal is the largest message.
const MaxSignal = 7900
