package stats

import "time"

// Retention says how long pages are kept, by their level.
type Retention struct {
	Minutes time.Duration // Defaults to 2 days.
	Hours   time.Duration // Defaults to 31 days.
	Days    time.Duration // Defaults to 400 days, which are 13 months and a few days.
}

// SetDefaults sets what is zero.
func (r *Retention) SetDefaults() {
	const day = 24 * time.Hour
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{{&r.Minutes, 2 * day}, {&r.Hours, 31 * day}, {&r.Days, 400 * day}} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
}

// Of returns the retention of a level.
func (r *Retention) Of(l Level) time.Duration {
	return [...]time.Duration{Minute: r.Minutes, Hour: r.Hours, Day: r.Days}[l]
}
