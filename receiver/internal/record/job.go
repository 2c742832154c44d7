package record

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/receiver"
)

// maxReason bounds what is kept of a reason.
const maxReason = 1000

// Token proves a worker.
func Token() string { return rand.Text() }

// Job reads a claimed job.
func Job(id, text, token string, attempt int) (receiver.ClaimedJob, bool) {
	j := receiver.ClaimedJob{Attempt: attempt, Token: token}
	if err := json.Unmarshal([]byte(text), &j.Job); err != nil {
		return j, false
	}
	j.ID = id
	return j, true
}

// SortJobs puts jobs that were claimed together in the order in which they were received: databases return what they have
// changed in any order.
func SortJobs(jobs []receiver.ClaimedJob) {
	slices.SortFunc(jobs, func(a, b receiver.ClaimedJob) int {
		if c := a.Delivery.ReceivedAt.Compare(b.Delivery.ReceivedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// Reason is a reason as it is kept.
func Reason(text string) string {
	return Text(text[:min(len(text), maxReason)])
}

// Text is a text that every database takes: UTF-8 without NUL.
func Text(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}

// Refund is how many attempts a settlement gives back.
func Refund(s receiver.Settlement) int {
	if s.Interrupted {
		return 1
	}
	return 0
}
