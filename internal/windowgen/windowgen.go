// Package windowgen draws windows and times near the edges of their panes, for tests of
// properties. It knows no window, so that the tests of package rules can use it.
package windowgen

import (
	"time"

	"pgregory.net/rapid"
)

// Length draws a window's length: a usual one, or any from least to greatest.
func Length(least, greatest time.Duration) *rapid.Generator[time.Duration] {
	return rapid.OneOf(
		rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, 15 * time.Second, time.Minute, time.Hour}),
		rapid.Map(rapid.Int64Range(int64(least), int64(greatest)), func(d int64) time.Duration { return time.Duration(d) }),
	)
}

// Time draws a time within a hundred years of 1970, often at the edge of a pane. Start returns
// the time at which the pane with the given number starts.
func Time(pane time.Duration, start func(number int64) time.Time) *rapid.Generator[time.Time] {
	const century = 100 * 365 * 24 * int64(time.Hour)
	edge := rapid.Custom(func(t *rapid.T) time.Time {
		maxNumber := century / int64(pane)
		return start(rapid.Int64Range(-maxNumber, maxNumber).Draw(t, "pane")).Add(time.Duration(rapid.Int64Range(-1, 1).Draw(t, "off")))
	})
	free := rapid.Map(rapid.Int64Range(-century, century), func(ns int64) time.Time { return time.Unix(0, ns) })
	return rapid.OneOf(edge, free)
}
