package rules

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// Rate is N counts within a window of Per, written "200/s", "10/500ms",
// "60/1m" or "10/1w". As a threshold, Per is the window that is counted; as a limit, it is
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
	errRateCount = errors.New("the count must be a whole number of at least 1, or a fraction such as 0.5")
	errRatePer   = errors.New("the time must be a positive duration, for example s, 10s, 1m, 1h, 1d or 1w")
	errRateHigh  = fmt.Errorf("more than %d per second", MaxRate)
)

// ParseRate reads "N/D": N a whole number ≥ 1, D a Go duration with or without
// its number ("s" is "1s"), whose units may also be d and w, for days and weeks.
//
// N may also be a fraction: "0.5/s" is 1/2s, and "2.5/s" is 5/2s, since a window
// or a burst has a whole count. Its lowest form must be of tenths or more, or have
// 1 above the line. Others are an error that names the exact rate: "0.333/s" would
// be 333/16m40s, with a burst of 333, which is hardly meant.
func ParseRate(s string) (Rate, error) {
	count, per, ok := strings.Cut(strings.TrimSpace(s), "/")
	if !ok {
		return Rate{}, fmt.Errorf("rate %q: %w", s, errRateForm)
	}
	n, times, err := parseRateCount(strings.TrimSpace(count))
	if err != nil {
		return Rate{}, fmt.Errorf("rate %q: %w", s, err)
	}
	d, err := parsePer(strings.TrimSpace(per))
	if err != nil || d > math.MaxInt64/time.Duration(times) {
		return Rate{}, fmt.Errorf("rate %q: %w", s, errRatePer)
	}
	r := Rate{N: n, Per: d * time.Duration(times)}
	if times > maxRateParts && n > 1 {
		return Rate{}, fmt.Errorf("rate %q: %w", s, fractionError(r, d))
	}
	if r.PerSecond() > MaxRate {
		return Rate{}, fmt.Errorf("rate %q: %w", s, errRateHigh)
	}
	return r, nil
}

// maxRateParts is the most parts of a time that a rate with a fraction is spread over.
const maxRateParts = 10

// parseRateCount reads the count of a rate as a whole number within so many times the time.
func parseRateCount(s string) (n, times int64, err error) {
	if !strings.Contains(s, ".") {
		n, err = strconv.ParseInt(s, 10, 64)
		if err != nil || n < 1 {
			return 0, 0, errRateCount
		}
		return n, 1, nil
	}
	f, err := ParseFraction(s, 1)
	switch {
	case errors.Is(err, ErrDigits):
		return 0, 0, fmt.Errorf("the count: %w", err)
	case err != nil || f.IsZero():
		return 0, 0, errRateCount
	}
	return f.Num, f.Den, nil
}

// fractionError refuses a rate whose count is a fraction within per, and names the exact rate
// and, for less than one, the nearest one that is read.
func fractionError(exact Rate, per time.Duration) error {
	if exact.Per/per <= time.Duration(exact.N) {
		return fmt.Errorf("the count is no whole number of tenths; exactly it is %s", exact)
	}
	near := (int64(exact.Per/per) + exact.N/2) / exact.N // fits, since exact.Per does
	return fmt.Errorf("the count is no whole number of tenths; exactly it is %s, and nearly %s", exact, Rate{1, per * time.Duration(near)})
}

func parsePer(s string) (time.Duration, error) {
	unit := s
	if s != "" && s[0] != '.' && (s[0] < '0' || s[0] > '9') {
		unit = "1" + s
	}
	d, err := base.ParseDuration(unit)
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

// Interval returns the ns in which the rate earns one permit, rounded up.
func (r Rate) Interval() int64 { return (int64(r.Per)-1)/r.N + 1 }

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

// shortDuration drops the zero parts that time.Duration writes, and counts whole days: 1m0s is
// 1m, a week 7d. Weeks and parts of a day beside days are left out: earlier versions do not read
// them, and rates are published.
func shortDuration(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
