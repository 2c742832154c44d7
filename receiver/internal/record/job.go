package record

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/receiver"
)

// maxReason limits the kept length of a reason.
const maxReason = 1000

// Token makes a token that identifies a worker.
func Token() string { return rand.Text() }

func readJob(id, text, token string, attempt int) (receiver.ClaimedJob, bool) {
	j := receiver.ClaimedJob{Attempt: attempt, Token: token}
	if err := json.Unmarshal([]byte(text), &j.Job); err != nil {
		return j, false
	}
	j.ID = id
	return j, true
}

// Rows are the rows of any database driver.
type Rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
}

// ClaimedJobs reads rows of id, delivery and attempt. broken are the ids of jobs that cannot be read.
func ClaimedJobs(rows Rows, token string) (jobs []receiver.ClaimedJob, broken []string, err error) {
	for rows.Next() {
		var id, text string
		var attempt int
		if err := rows.Scan(&id, &text, &attempt); err != nil {
			return nil, nil, err
		}
		j, ok := readJob(id, text, token, attempt)
		if !ok {
			broken = append(broken, id)
			continue
		}
		jobs = append(jobs, j)
	}
	sortJobs(jobs)
	return jobs, broken, rows.Err()
}

// sortJobs sorts jobs that were claimed together by their time of receipt: databases return changed rows in any order.
func sortJobs(jobs []receiver.ClaimedJob) {
	slices.SortFunc(jobs, func(a, b receiver.ClaimedJob) int {
		if c := a.Delivery.ReceivedAt.Compare(b.Delivery.ReceivedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// Reason is a reason in the form in which it is kept.
func Reason(text string) string {
	return Text(text[:min(len(text), maxReason)])
}

// Text is a text that every database accepts: UTF-8 without NUL.
func Text(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}

// Refund is the number of attempts that a settlement gives back.
func Refund(s receiver.Settlement) int {
	if s.Interrupted {
		return 1
	}
	return 0
}
