package alert

import (
	"context"
	"log/slog"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// An Alert is a group of notices that is sent to a tenant's people at once.
type Alert struct {
	Tenant  *godwit.Tenant
	Notices []Notice // at least one, oldest first
	More    map[godwit.NoticeKind]int
}

// A Notice is a stored notice with the names of its endpoint.
type Notice struct {
	godwit.Notice
	Endpoint    string // public id; empty when it is unknown
	Description string // as its owner wrote it
}

// Concerns reports whether a notice of this kind causes an alert. Other notices are only listed.
func Concerns(kind godwit.NoticeKind) bool {
	switch kind {
	case godwit.NoticeDeadLetter, godwit.NoticeEndpointDegraded, godwit.NoticeEndpointDisabled:
		return true
	}
	return false
}

// A Notifier sends alerts to people.
type Notifier interface {
	// Notify sends an alert. An error that is Permanent is not retried.
	Notify(ctx context.Context, a Alert) error
}

// Permanent marks an error that a retry would not change.
type Permanent struct{ Err error }

func (p *Permanent) Error() string { return p.Err.Error() }
func (p *Permanent) Unwrap() error { return p.Err }

// Log is a Notifier that writes a line for each notice.
type Log struct{ Log *slog.Logger }

// Notify never fails.
func (l Log) Notify(_ context.Context, a Alert) error {
	for _, n := range a.Notices {
		l.Log.Warn("alert", "kind", string(n.Kind), "tenant", a.Tenant.ID.String(), "endpoint", n.EndpointID.String(),
			"public_id", n.Endpoint, "detail", n.Detail)
	}
	for kind, count := range a.More {
		l.Log.Warn("alerts", "kind", string(kind), "tenant", a.Tenant.ID.String(), "more", count)
	}
	return nil
}
