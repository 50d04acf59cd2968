//go:build !race

package claims

import (
	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// arrived is a count that has arrived, with the time for which it is counted.
type arrived struct{ when, n int64 }

// hearing is a detector that records the counts that arrive for each key.
type hearing struct {
	*aggregator.Detector
	heard map[rules.Key][]arrived
}

// Counts implements [decode.PacketHandler].
func (h hearing) Counts(counts []decode.Count) {
	for _, c := range counts {
		h.recordCount(c)
	}
	h.Detector.Counts(counts)
}

// Count implements [decode.Handler].
func (h hearing) Count(c decode.Count) {
	h.recordCount(c)
	h.Detector.Count(c)
}

func (h hearing) recordCount(c decode.Count) {
	key := rules.Key{Rule: ruleID(c.Rule), Text: string(c.Text)}
	h.heard[key] = append(h.heard[key], arrived{c.When.UnixNano(), c.N})
}

// jumps reports whether a key has jumped in some window that holds an event. The exact count
// looks at the window that ends with the pane of a request. A request that arrives later is also
// looked at in the pane of its arrival, when the baseline has moved on.
//
// Counts that a collector held back for as long as a window, and then dropped, are part of no
// baseline.
func (k *kinds) jumps(rule int, key string, e found) bool {
	t := k.Rules[rule].Hot[0]
	if t.Kind != "jump" {
		return false
	}
	width := exact.NewWindow(t.D).Width
	for pane := e.At / width * width; pane < e.At+int64(t.D); pane += width {
		c := k.counters[rule]
		to := pane + width - int64(t.D)
		from := to - 10*int64(t.D)
		if n := k.aged(rule, key, e, from, to); n > 0 {
			c = k.without(rule, key, from, n)
		}
		if need, n := c.Needs(0, key, pane); need.Known && n >= need.Enter {
			return true
		}
	}
	return false
}

// aged returns how many requests for a key in a span of time had not arrived at an event and
// never will.
func (k *kinds) aged(rule int, key string, e found, from, to int64) (n int64) {
	for _, at := range k.asked[rule][key] {
		if from <= at && at < to {
			n++
		}
	}
	for _, h := range e.heard {
		if from <= h.when && h.when < to {
			n -= h.n
		}
	}
	var agedCounts int64
	for _, c := range k.collectors {
		agedCounts += c.Stats().Aged
	}
	return min(n, agedCounts)
}

// without returns the exact count of a key's requests, leaving out the first n from an instant
// on.
func (k *kinds) without(rule int, key string, from, n int64) *exact.Counter {
	c := exact.NewCounter(k.Rules[rule])
	c.Tick(k.began - quiet)
	for _, at := range k.asked[rule][key] {
		if n > 0 && at >= from {
			n--
			continue
		}
		c.Add(at, key, 1)
	}
	c.Result()
	return c
}
