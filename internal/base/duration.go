package base

import (
	"errors"
	"math"
	"strings"
	"time"
)

var errDuration = errors.New(`want a duration, for example 10s, 1h30m, 1d12h or 1w`)

// ParseDuration reads a duration in the form of files and flags. It accepts the syntax of
// [time.ParseDuration], and the units d, a day of 24 hours, and w, a week of 7 days: "1d12h",
// "1.5d", "2w".
func ParseDuration(s string) (time.Duration, error) {
	if !strings.ContainsAny(s, "dw") {
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, errDuration
		}
		return d, nil
	}
	tail, negative := strings.CutPrefix(s, "-")
	if !negative {
		tail = strings.TrimPrefix(tail, "+")
	}
	var sum time.Duration
	for tail != "" {
		number := len(tail) - len(strings.TrimLeft(tail, "0123456789."))
		unit := len(tail[number:]) - len(strings.TrimLeft(tail[number:], "abcdefghijklmnopqrstuvwxyzµμ"))
		part, times := tail[:number+unit], time.Duration(1)
		switch tail[number : number+unit] {
		case "d":
			part, times = tail[:number]+"h", 24
		case "w":
			part, times = tail[:number]+"h", 7*24
		case "":
			return 0, errDuration
		}
		d, err := time.ParseDuration(part)
		if err != nil || number == 0 || d > (math.MaxInt64-sum)/times {
			return 0, errDuration
		}
		sum, tail = sum+d*times, tail[number+unit:]
	}
	if negative {
		sum = -sum
	}
	return sum, nil
}

// DurationFlag is a duration as the value of a command-line flag.
type DurationFlag time.Duration

// Set reads a duration with [ParseDuration].
func (f *DurationFlag) Set(s string) error {
	d, err := ParseDuration(s)
	if err == nil {
		*f = DurationFlag(d)
	}
	return err
}

// String returns the duration in the form of package time, or "0" for zero, which help omits.
func (f *DurationFlag) String() string {
	if *f == 0 {
		return "0"
	}
	return time.Duration(*f).String()
}

// Type returns the name of the value in help.
func (f *DurationFlag) Type() string { return "duration" }
