// Package backoff assigns the clients that are refused their own times to retry.
package backoff

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/answer"
	"github.com/hotparam/hotparam/rules"
)

// Max bounds how much a client's time to retry is later than the time when a retry can
// pass. A client that retries sooner gets a new place each time, so it would move the next free
// place of its key's line ahead without end, and clients that obey would wait behind it.
const Max = 5 * time.Minute

// Lines assigns each refused client its own time to retry. The clients of a key get
// consecutive places in a line, as far apart as the key's limit lets requests pass.
// Keys are found by their hash in sets of four lines, each set 64 bytes long. A key that finds
// all lines of its set in use by others shares the first, whose keys then wait longer than
// necessary. No operation locks or allocates.
type Lines [1 << 10][4]line

// line is the line of one key.
type line struct {
	key  atomic.Uint64 // the key's hash
	free atomic.Int64  // the first free place, in ns on the guard's clock
}

// lineOf returns the line of a key. It replaces a line whose places have all passed by now.
func (b *Lines) lineOf(hash uint64, now time.Duration) *line {
	set := &b[hash%uint64(len(b))]
	for i := range set {
		if set[i].key.Load() == hash {
			return &set[i]
		}
	}
	for i := range set {
		if line := &set[i]; line.free.Load() <= int64(now) { // all its places have passed
			line.key.Store(hash)
			return line
		}
	}
	return &set[0]
}

// Next returns how long a client that is refused at now, on the guard's clock, should wait, in
// whole seconds. The wait is at least after, the time until a retry can pass. Places are interval
// apart, so a second gets no more of them than it has intervals. If no place before Max is
// free, Next draws the wait at random from that range.
func (b *Lines) Next(hash uint64, now, after, interval time.Duration) time.Duration {
	seconds := answer.Seconds(after)
	if after > math.MaxInt64/2-now { // now+after would overflow, and such a wait is of no use
		return time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second
	}
	thisSecond := now.Truncate(time.Second)
	first := thisSecond + time.Duration(seconds)*time.Second
	line := b.lineOf(hash, now)
	for {
		free := line.free.Load()
		place := max(first, time.Duration(free))
		if place-first >= Max {
			return first - thisSecond + rand.N(Max).Truncate(time.Second)
		}
		if line.free.CompareAndSwap(free, int64(place+min(interval, Max))) {
			return place.Truncate(time.Second) - thisSecond
		}
	}
}

// Interval returns the time in which a quota lets the given number of permits pass.
func Interval(q *rules.Quota, permits float64) time.Duration {
	return Whole(float64(q.Rate.Per) / float64(q.Rate.N) * permits)
}

// Whole returns a time of whole nanoseconds, at most Max.
func Whole(nanoseconds float64) time.Duration {
	return time.Duration(math.Ceil(min(nanoseconds, float64(Max))))
}
