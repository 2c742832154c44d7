package sqlite

import "context"

// Signal does nothing: there is no other node.
func (s *nodes) Signal(context.Context, []string) error { return nil }

// Listen receives nothing.
func (s *nodes) Listen(ctx context.Context, _ func(string), _ func()) { <-ctx.Done() }
