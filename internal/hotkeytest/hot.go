// Package hotkeytest makes hot keys for the tests of packages hotset and hotkeys.
package hotkeytest

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Hot returns a hot key with a threshold of 100/s and the given rate and limit per second.
func Hot(text string, rate float64, limit int64) published.Hot {
	return published.Hot{
		Key:   rules.Key{Rule: "search-terms", Text: text},
		Low:   int64(rate),
		High:  int64(rate) + 10,
		Rate:  rate,
		Ratio: rate / 100,
		Since: time.UnixMilli(1732172445123),
		Limit: rules.Rate{N: limit, Per: time.Second},
		Burst: 2 * limit,
		Mode:  rules.ModeLimit,
	}
}

// Hots returns a change in which the keys become hot.
func Hots(h ...published.Hot) published.Change { return published.Change{Hot: h} }

// Cools returns a change in which the keys cool.
func Cools(h ...published.Hot) published.Change { return published.Change{Cool: h} }

// Text returns the text of key i.
func Text(i int) string { return fmt.Sprintf("GET /search?q=%d", i) }
