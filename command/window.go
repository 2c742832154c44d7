package command

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	day = 24 * time.Hour
	// longest keeps the sum of a time and a window within the range of stores.
	longest = 36_525 * day
)

// ParseWindow reads a window as a declaration writes it: "10m", "24h", "1h30m", "30d" or "never".
func ParseWindow(text string) (Window, error) {
	if text == "never" {
		return Forever, nil
	}
	d, err := parseLength(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.40q is no length of time: write it as 10m, 24h, 30d or never", text)
	case d < time.Second:
		return 0, fmt.Errorf("%.40q is too short: the shortest is 1s", text)
	case d > longest:
		return 0, fmt.Errorf("%.40q is too long: the longest is %dd, or write never", text, longest/day)
	}
	return Window(d), nil
}

func parseLength(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 32)
		// More days than the longest are as good as one more; they must not overflow.
		return time.Duration(min(n, uint64(longest/day)+1)) * day, err
	}
	return time.ParseDuration(text)
}

// Duration is the window as a length of time; that of Forever is the longest there is.
func (w Window) Duration() time.Duration {
	if w == Forever {
		return math.MaxInt64
	}
	return time.Duration(w)
}

// End is when a window ends that begins at the given time. It is the zero time for Forever (IDS-STO-8).
func (w Window) End(begin time.Time) time.Time {
	if w == Forever {
		return time.Time{}
	}
	return begin.Add(time.Duration(w))
}

// String is the text that ParseWindow reads, in the largest unit that takes it whole. It is empty for no window.
func (w Window) String() string {
	d := time.Duration(w)
	switch {
	case w == Forever:
		return "never"
	case w == 0:
		return ""
	case d%day == 0 && d != day:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	case d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	}
	return d.String()
}

// MarshalText is String.
func (w Window) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText is ParseWindow.
func (w *Window) UnmarshalText(text []byte) error {
	parsed, err := ParseWindow(string(text))
	if err != nil {
		return err
	}
	*w = parsed
	return nil
}
