package godwit

import "time"

// Usage counts what a tenant used. Each count is stored in the transaction that stores what it counts.
type Usage struct {
	Events        int64 // events accepted; the repeat of a request counts no second time
	Deliveries    int64 // deliveries made: one for each endpoint that an event goes to
	Attempts      int64 // attempts to deliver, of any outcome
	BytesAccepted int64 // payloads of the events
	BytesSent     int64 // bodies of the requests, one for each attempt
}

// Add adds another usage.
func (u *Usage) Add(o Usage) {
	u.Events += o.Events
	u.Deliveries += o.Deliveries
	u.Attempts += o.Attempts
	u.BytesAccepted += o.BytesAccepted
	u.BytesSent += o.BytesSent
}

// DayUsage is the usage of one day.
type DayUsage struct {
	Day time.Time // its beginning, UTC
	Usage
}

// TenantUsage is the usage of a tenant, by day.
type TenantUsage struct {
	TenantID TenantID
	UID      string
	Days     []DayUsage // those with usage, in order
}

// TotalUsage returns the usage of all days together.
func TotalUsage(days []DayUsage) (sum Usage) {
	for i := range days {
		sum.Add(days[i].Usage)
	}
	return sum
}

// usageMonths is how many months usage is kept, besides the current one.
const usageMonths = 13

// MaxUsageDays bounds the days with usage: the longest 13 months and the current one.
const MaxUsageDays = 397 + 31

// UsageKept returns the first day whose usage is kept at a time. It is the first of a month: bills are made of whole months.
func UsageKept(now time.Time) time.Time {
	now = now.UTC()
	return time.Date(now.Year(), now.Month()-usageMonths, 1, 0, 0, 0, 0, time.UTC)
}

// DayOf returns the beginning of the day, UTC, of a time.
func DayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
