package decode

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Times for which counts are awaited.
const (
	// DefaultLag is how long counts take to arrive.
	DefaultLag = 250 * time.Millisecond
	// DefaultGrace is how much later than its window a count may arrive and still be placed in
	// it.
	DefaultGrace = 2 * time.Second
)

// BaselineWindows is the number of windows before the current one that a baseline averages.
const BaselineWindows = 10

// Lookback returns how far back counts matter: the longest window, plus the ten before it if a
// rule compares with them.
func Lookback(rules *rules.Rules) time.Duration {
	d := time.Duration(0)
	for i := range rules.Rules {
		d = max(d, lookback(&rules.Rules[i]))
	}
	return d
}

func lookback(rule *rules.Rule) time.Duration {
	d := time.Duration(0)
	for _, t := range rule.Hot {
		if t.Kind == rules.Jump {
			d = max(d, (BaselineWindows+1)*t.Rate.Per)
		}
		d = max(d, t.Rate.Per)
	}
	return d
}

// Tick is the longest time between two calls of [Decoder.Advance], or of a handler's own
// clock.
const Tick = 50 * time.Millisecond
