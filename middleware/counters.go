package middleware

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Counters are counters of a guard; see [Stats].
type Counters[N any] struct {
	Limited     N // requests that were refused
	Blocked     N // part of Limited: requests with a value that a rule or an operator blocks
	Busy        N // part of Limited: requests that found no free permit of a concurrency limit
	Unavailable N // part of Limited: requests refused because the backend was unavailable
	Served      N // part of Limited: requests that were answered instead of the handler
	// Undecided counts questions that an available backend did not answer: the request's
	// context had ended, or the backend does not support the limit.
	Undecided N
	Shadowed  N // requests that would have been refused
	Waited    N // requests that waited for their turn
	Waiting   N // requests that wait for their turn now
	Gone      N // part of Waited: requests whose context ended while they waited; not in Limited
	Charged   N // requests whose cost was charged at their end
	Panics    N // requests that passed because hotparam panicked
	// Unmeasured counts requests of rules with hot.cost whose usage found no room, at least in part.
	Unmeasured N
	// Canceled counts requests of held keys that were canceled, by limit.cancel.
	Canceled N
	// More counts the times that a rule made more than [rules.MaxKeys] keys of a request. The
	// keys beyond that were counted as one.
	More N
}

// spreadCount is a counter in several cache lines, since each request may add to it.
type spreadCount [8]struct {
	n atomic.Int64
	_ [56]byte
}

func (c *spreadCount) add(n int) {
	if n > 0 {
		c[rand.Uint32()%uint32(len(c))].n.Add(int64(n))
	}
}

// addOne adds one in the shard of a request. A processor tends to use the same requests, so
// it tends to use the same shard.
func (c *spreadCount) addOne(shard uint32) { c[shard%uint32(len(c))].n.Add(1) }

func (c *spreadCount) load() (sum int64) {
	for i := range c {
		sum += c[i].n.Load()
	}
	return sum
}

// decisionGone is the index of requests whose context ended while they waited. The other
// indices are reasons.
const decisionGone = len(decisionCounts{}.of) - 1

// decisionCounts counts the requests that a rule decided on.
type decisionCounts struct {
	of [rules.ReasonShared + 2]spreadCount
	// asked counts the part of of[rules.ReasonShared] whose limits were asked after all. These
	// requests count by that decision.
	asked  spreadCount
	shared atomic.Int64 // the most that loadShared has returned
}

// loadShared returns the number of requests that were answered together with others. It never
// decreases, as counters of metrics must not: a request between the two steps of its check may
// have been returned already. It is then too high by such requests at most, until others follow.
func (c *decisionCounts) loadShared() int64 {
	n := c.of[rules.ReasonShared].load() - c.asked.load()
	for {
		most := c.shared.Load()
		if n <= most || c.shared.CompareAndSwap(most, n) {
			return max(n, most)
		}
	}
}

// displacement counts the effects of full tables on a rule's keys.
type displacement struct {
	displaced uint64 // keys that lost their place, or found none
	inherited uint64 // requests whose keys began with an earlier debt
}

func (d displacement) plus(e displacement) displacement {
	return displacement{d.displaced + e.displaced, d.inherited + e.inherited}
}

// Histogram counts durations.
type Histogram struct {
	Bounds []time.Duration // upper bounds, ascending
	Counts []int64         // durations up to each bound and above the previous one; the last counts longer ones
	Sum    time.Duration
}

var durationBounds = []time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
}

// durations is a histogram for concurrent use.
type durations struct {
	counts [11]atomic.Int64 // one more than durationBounds
	sum    atomic.Int64
}

func (d *durations) add(t time.Duration) {
	i, _ := slices.BinarySearch(durationBounds, t)
	d.counts[i].Add(1)
	d.sum.Add(int64(t))
}
