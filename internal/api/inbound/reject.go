package inbound

import (
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// Bounds of a rejection record.
const (
	maxHeaderNames  = 64
	maxHeaderName   = 64
	maxDetail       = 300
	rejectedTimeout = 5 * time.Second
)

// Rejection records per second, and their burst.
const (
	recordRate        = 20
	recordBurst       = 100
	recordSourceRate  = 5
	recordSourceBurst = 50
	mostRecorded      = 4096 // sources with a limiter of their own
)

// recording bounds the rejection records that unauthenticated senders can cause: in total and by source, so that noise at
// one source does not hide rejections at another.
type recording struct {
	all *rate.Limiter

	mu  sync.Mutex
	one map[godwit.SourceID]*rate.Limiter
}

func newRecording() *recording {
	return &recording{all: rate.NewLimiter(recordRate, recordBurst), one: map[godwit.SourceID]*rate.Limiter{}}
}

func (r *recording) allow(id godwit.SourceID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.one[id]
	if own == nil {
		if len(r.one) >= mostRecorded {
			clear(r.one)
		}
		own = rate.NewLimiter(recordSourceRate, recordSourceBurst)
		r.one[id] = own
	}
	return own.AllowN(now, 1) && r.all.AllowN(now, 1)
}

// refused records a rejected request, so that an operator sees the reason. The rate is bounded here, number and age in the
// store. Header values, payload and credentials are left out (EDS-SEC-CNF-2).
func (x *exchange) refused(p *problem.Problem) {
	if x.src == nil || p.Status >= http.StatusInternalServerError || taken(p) {
		return // caused by the server or by an endpoint; the deliveries record those
	}
	now := x.cfg.Clock.Now().Truncate(time.Microsecond)
	x.cfg.Log.Debug("delivery refused", "source", x.src.ID.String(), "status", p.Status, "code", p.Code, "reason", x.reason)
	if !x.recording.allow(x.src.ID, now) {
		return
	}
	host, _, splitErr := net.SplitHostPort(x.r.RemoteAddr)
	if splitErr != nil {
		host = x.r.RemoteAddr
	}
	j := &godwit.Rejection{
		ID: godwit.NewRejectionID(now), TenantID: x.src.TenantID, SourceID: x.src.ID, Status: p.Status, Code: p.Code, Reason: x.reason,
		Detail: cut(p.Detail, maxDetail), RemoteAddr: host, Method: cut(x.r.Method, 16), Size: max(x.r.ContentLength, int64(len(x.body))), At: now,
	}
	for _, name := range slices.Sorted(maps.Keys(x.r.Header)) {
		if len(j.Headers) < maxHeaderNames {
			j.Headers = append(j.Headers, cut(name, maxHeaderName))
		}
	}
	ctx, cancel := context.WithTimeout(x.unhurried(), rejectedTimeout)
	defer cancel()
	if err := x.cfg.Store.AddRejection(ctx, j, godwit.MaxRejections); err != nil {
		x.cfg.Log.Error("record rejection", "source", x.src.ID.String(), "error", err)
	}
}

func cut(text string, most int) string {
	clean := make([]rune, 0, min(len(text), most))
	for _, c := range text {
		if len(clean) == most {
			break
		}
		if c < ' ' {
			c = ' '
		}
		clean = append(clean, c)
	}
	return string(clean)
}
