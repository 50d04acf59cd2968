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

// Rate is N counts within a window of Per, written "200/s", "10/500ms", "60/1m" or "10/1w". For a
// threshold, Per is the window over which counts are summed; for a limit, it is the time in which
// a bucket earns N tokens. The zero value means no rate.
type Rate struct {
	N   int64
	Per time.Duration
}

// MaxRate is the highest rate per second of a limit or a threshold. Above it, a token's interval
// in whole nanoseconds is off by over 1%.
const MaxRate = 10_000_000

var (
	errRateForm  = errors.New(`want N/D, for example "200/s" or "60/1m"`)
	errRateCount = errors.New("the count must be a whole number of at least 1, or a fraction such as 0.5")
	errRatePer   = errors.New("the time must be a positive duration, for example s, 10s, 1m, 1h, 1d or 1w")
	errRateHigh  = fmt.Errorf("more than %d per second", MaxRate)
)

// ParseRate reads "N/D": N is a whole number ≥ 1, and D is a Go duration with or without its
// number ("s" is "1s"). The units of D may also be d and w, for days and weeks.
//
// N may also be a fraction: "0.5/s" is 1/2s, and "2.5/s" is 5/2s, since a window or a burst has a
// whole count. In lowest terms its denominator must be at most 10, or its numerator 1. Other
// fractions are an error that names the exact rate: "0.333/s" would be 333/16m40s, with a burst
// of 333, which is hardly intended.
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

// maxRateParts is the largest denominator of a fractional count, unless its numerator is 1.
const maxRateParts = 10

// parseRateCount reads the count of a rate as n within times the period.
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
	case err != nil || f.Num == 0:
		return 0, 0, errRateCount
	}
	return f.Num, f.Den, nil
}

// fractionError returns the error for a rate whose count is a fraction within per. It names the
// exact rate and, for less than one per period, the nearest rate that ParseRate accepts.
func fractionError(exact Rate, per time.Duration) error {
	if exact.Per/per <= time.Duration(exact.N) {
		return fmt.Errorf("the count is no whole number of tenths; exactly it is %s", exact)
	}
	near := (int64(exact.Per/per) + exact.N/2) / exact.N // cannot overflow, since exact.Per does not
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

// PerSecond returns the rate as counts per second, or 0 for the zero value.
func (r Rate) PerSecond() float64 {
	if r.Per <= 0 {
		return 0
	}
	return float64(r.N) / r.Per.Seconds()
}

// Interval returns the time in nanoseconds in which the rate earns one permit, rounded up.
func (r Rate) Interval() int64 { return (int64(r.Per)-1)/r.N + 1 }

// IsZero reports whether no rate was given.
func (r Rate) IsZero() bool { return r == Rate{} }

// String returns the rate in a form that [ParseRate] reads: "200/s", "60/1m".
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

// shortDuration omits the zero parts that time.Duration writes, and writes whole days: 1m0s is
// 1m, a week 7d. It does not write weeks, or days with a remainder: rates are published, and
// earlier versions cannot read these forms.
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

// Bounds of a rule's window.
const (
	MinWindow = time.Second
	MaxWindow = time.Hour
)

// Window is the half-open time that a rule counts over: the last D, in panes aligned to the Unix
// epoch, including the current pane, which is partly filled. So it never spans more than D, and
// its count is never more than that of some continuous half-open window of D.
type Window struct {
	Pane  time.Duration // width of a pane: max(100 ms, D/60)
	Panes int           // number of panes in the window: ⌊D/Pane⌋, 10 to 60
}

// NewWindow returns the panes of a window of d, which is 1 s to 1 h.
func NewWindow(d time.Duration) Window {
	pane := max(base.FlushInterval, d/60)
	return Window{Pane: pane, Panes: int(d / pane)}
}

// Index returns the number of the pane that holds t, counted from the Unix epoch.
func (w Window) Index(t time.Time) int64 { return base.FloorDiv(t.UnixNano(), int64(w.Pane)) }

// Start returns the first instant of pane i.
func (w Window) Start(i int64) time.Time { return time.Unix(0, i*int64(w.Pane)) }
