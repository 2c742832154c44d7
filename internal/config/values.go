package config

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration that can also be written in days: 30d.
type Duration time.Duration

const day = 24 * time.Hour

// UnmarshalText reads 90s, 1h30m or 30d.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(n >= 0 && n <= 36500) {
			return fmt.Errorf("%q is not a number of days from 0 to 36500", s)
		}
		*d = Duration(n * float64(day))
		return nil
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration such as 90s, 24h or 30d", s)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the shortest form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d Duration) String() string {
	v := time.Duration(d)
	if v >= 2*day && v%day == 0 {
		return strconv.FormatInt(int64(v/day), 10) + "d"
	}
	s := v.String()
	s = strings.TrimSuffix(s, "0s")
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	if s == "" || !strings.ContainsAny(s[len(s)-1:], "smh") {
		return v.String()
	}
	return s
}

// Real converts the duration to the standard library's type.
func (d Duration) Real() time.Duration { return time.Duration(d) }

// Size is a number of bytes, written with a unit: 1MiB.
type Size int64

var units = []struct {
	name string
	size int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// UnmarshalText reads 1048576, 1024KiB or 1MiB.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := strings.TrimSpace(string(text)), int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(n), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is not a size such as 65536, 512KiB or 1MiB", text)
	}
	*s = Size(n * unit)
	return nil
}

// MarshalText writes the largest binary unit that divides the size.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s Size) String() string {
	for i := 3; i >= 0; i-- {
		if u := units[i]; s > 0 && int64(s)%u.size == 0 {
			return strconv.FormatInt(int64(s)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Network is a range of addresses; a single address is one too.
type Network struct{ netip.Prefix }

// UnmarshalText reads 10.0.0.0/8 or 10.1.2.3.
func (n *Network) UnmarshalText(text []byte) error {
	s := string(text)
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		n.Prefix = netip.PrefixFrom(a, a.BitLen())
		return nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return fmt.Errorf("%q is not an address or a range such as 10.0.0.0/8", s)
	}
	if p != p.Masked() {
		return fmt.Errorf("%q has bits set beyond its prefix; did you mean %s?", s, p.Masked())
	}
	n.Prefix = p
	return nil
}

// Prefixes converts networks to the standard library's type.
func Prefixes(networks []Network) []netip.Prefix {
	var out []netip.Prefix
	for _, n := range networks {
		out = append(out, n.Prefix)
	}
	return out
}
