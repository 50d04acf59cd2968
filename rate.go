package hotparam

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is N counts within a window of Per, written "200/s", "10/500ms" or
// "60/1m". As a threshold, Per is the window that is counted; as a limit, it is
// the time in which a bucket earns N tokens. The zero value is no rate at all.
type Rate struct {
	N   int64
	Per time.Duration
}

// MaxRate is the highest rate per second that a limit or a threshold may ask
// for: beyond it a token's interval in whole nanoseconds is off by over 1%.
const MaxRate = 10_000_000

var (
	errRateForm  = errors.New(`want N/D, for example "200/s" or "60/1m"`)
	errRateCount = errors.New("the count must be a whole number of at least 1")
	errRatePer   = errors.New("the time must be a positive duration, for example s, 10s, 1m or 1h")
	errRateHigh  = fmt.Errorf("more than %d per second", MaxRate)
)

// ParseRate reads "N/D": N a whole number ≥ 1, D a Go duration with or without
// its number ("s" is "1s"), or d for days.
func ParseRate(s string) (Rate, error) {
	count, per, ok := strings.Cut(strings.TrimSpace(s), "/")
	if !ok {
		return Rate{}, fmt.Errorf("rate %q: %w", s, errRateForm)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
	if err != nil || n < 1 {
		return Rate{}, fmt.Errorf("rate %q: %w", s, errRateCount)
	}
	d, err := parsePer(strings.TrimSpace(per))
	if err != nil {
		return Rate{}, fmt.Errorf("rate %q: %w", s, err)
	}
	r := Rate{N: n, Per: d}
	if r.PerSecond() > MaxRate {
		return Rate{}, fmt.Errorf("rate %q: %w", s, errRateHigh)
	}
	return r, nil
}

func parsePer(s string) (time.Duration, error) {
	unit := s
	if s != "" && s[0] != '.' && (s[0] < '0' || s[0] > '9') {
		unit = "1" + s
	}
	if days, ok := strings.CutSuffix(unit, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		if err != nil || n < 1 || n > math.MaxInt64/int64(24*time.Hour) {
			return 0, errRatePer
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(unit)
	if err != nil || d <= 0 {
		return 0, errRatePer
	}
	return d, nil
}

// PerSecond returns the rate as counts per second, 0 for the zero value.
func (r Rate) PerSecond() float64 {
	if r.Per <= 0 {
		return 0
	}
	return float64(r.N) / r.Per.Seconds()
}

// IsZero reports whether no rate was given.
func (r Rate) IsZero() bool { return r == Rate{} }

// String writes the rate so that [ParseRate] reads it back: "200/s", "60/1m".
func (r Rate) String() string {
	if r.IsZero() {
		return ""
	}
	per := "s"
	if r.Per != time.Second {
		per = shortDuration(r.Per)
	}
	return strconv.FormatInt(r.N, 10) + "/" + per
}

// shortDuration drops the zero parts that time.Duration writes: 1m0s is 1m.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
