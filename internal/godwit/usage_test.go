package godwit

import (
	"testing"
	"time"
)

// Thirteen whole months and the current one are kept, and may be asked for at once.
func TestUsageIsKeptByMonths(t *testing.T) {
	for now, want := range map[string]string{
		"2027-03-31T23:59:59Z":      "2026-02-01",
		"2027-01-01T00:00:00Z":      "2025-12-01",
		"2027-01-01T00:30:00+01:00": "2025-11-01", // still December in UTC
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if kept := UsageKept(at).Format(time.RFC3339); kept != want+"T00:00:00Z" {
			t.Errorf("at %s usage is kept from %s, want %s", now, kept, want)
		}
	}
	most := 0
	for day := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC); day.Year() < 2032; day = day.AddDate(0, 0, 1) {
		most = max(most, int(DayOf(day).Sub(UsageKept(day))/(24*time.Hour))+1)
	}
	if most != MaxUsageDays {
		t.Errorf("at most %d days are kept, not %d", most, MaxUsageDays)
	}
}
