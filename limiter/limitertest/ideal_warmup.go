package limitertest

import (
	"math/big"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// idealWarmUp is SmoothWarmingUp of Guava's RateLimiter in exact fractions: the more permits are
// stored, the colder it is and the longer each takes. A take is paid for before the next one;
// free is the time when it has been.
//
// https://github.com/google/guava/blob/master/guava/src/com/google/common/util/concurrent/SmoothRateLimiter.java
type idealWarmUp struct {
	burst     int64
	tick      time.Duration
	stable    *big.Rat // ns of a permit at the full rate
	slope     *big.Rat // ns by which a permit takes longer than the one stored before it
	threshold *big.Rat // permits that may be stored with the rate still full
	maxStored *big.Rat // permits stored by a cold bucket
	cool      *big.Rat // ns in which an idle bucket stores a permit
	stored    *big.Rat
	free      *big.Rat // ns; nil for a new bucket
}

func newIdealWarmUp(q *rules.Quota, tick time.Duration) *idealWarmUp {
	one, two := big.NewRat(1, 1), big.NewRat(2, 1)
	cold := new(big.Rat)
	cold.SetFloat64(q.ColdFactor)
	warmUp := big.NewRat(int64(q.WarmUp), 1)
	w := &idealWarmUp{burst: q.Burst, tick: tick, stable: big.NewRat(int64(q.Rate.Per), q.Rate.N)}
	permits := new(big.Rat).Quo(warmUp, w.stable) // permits earned during the warm-up at the full rate
	w.threshold = new(big.Rat).Quo(permits, new(big.Rat).Sub(cold, one))
	above := new(big.Rat).Mul(two, permits)
	above.Quo(above, new(big.Rat).Add(one, cold))
	w.maxStored = new(big.Rat).Add(w.threshold, above)
	w.slope = new(big.Rat).Mul(w.stable, new(big.Rat).Sub(cold, one))
	w.slope.Quo(w.slope, above)
	w.cool = new(big.Rat).Quo(warmUp, w.maxStored)
	w.stored = w.maxStored
	return w
}

func (w *idealWarmUp) idle(now time.Duration) {
	t := big.NewRat(int64(now), 1)
	switch {
	case w.free == nil:
		w.free = t
	case w.free.Cmp(t) < 0:
		stored := new(big.Rat).Sub(t, w.free)
		stored.Quo(stored, w.cool)
		w.stored, w.free = minRat(stored.Add(stored, w.stored), w.maxStored), t
	}
}

// cost returns how long n permits take: an integral over the stored ones, the coldest first, and
// the full rate for the rest.
func (w *idealWarmUp) cost(n int64) *big.Rat {
	stored := minRat(w.stored, big.NewRat(n, 1))
	cost := new(big.Rat).Mul(big.NewRat(n, 1), w.stable)
	// The part of the stored permits above the threshold adds a trapezium to that.
	zero := new(big.Rat)
	high := maxRat(zero, new(big.Rat).Sub(w.stored, w.threshold))
	low := maxRat(zero, new(big.Rat).Sub(high, stored))
	above := new(big.Rat).Sub(high, low)
	above.Mul(above, new(big.Rat).Add(high, low)).Mul(above, w.slope).Quo(above, big.NewRat(2, 1))
	return cost.Add(cost, above)
}

func (w *idealWarmUp) available(now time.Duration) int64 {
	var n int64
	for n < w.burst && w.wait(now, n+1) == 0 {
		n++
	}
	return n
}

// wait returns the time until all takes are paid for, except for the debt of a burst.
func (w *idealWarmUp) wait(now time.Duration, n int64) time.Duration {
	w.idle(now)
	burst := new(big.Rat).Mul(big.NewRat(w.burst, 1), w.stable)
	due := new(big.Rat).Sub(w.free, big.NewRat(int64(now), 1))
	if cost := w.cost(n); cost.Cmp(burst) <= 0 {
		due.Add(due, cost).Sub(due, burst)
	}
	return ceilTick(maxRat(new(big.Rat), due), w.tick)
}

func (w *idealWarmUp) delay(time.Duration) time.Duration { return 0 }

func (w *idealWarmUp) takePermits(now, _ time.Duration, n int64) int64 {
	w.idle(now)
	w.free = new(big.Rat).Add(w.free, w.cost(n))
	w.stored = new(big.Rat).Sub(w.stored, minRat(w.stored, big.NewRat(n, 1)))
	return 0
}

// charge leaves at most a burst, or as much as a minute earns at the full rate, owed beyond a
// burst. If a permit exceeds that, only its owed part counts. A charge also warms the bucket:
// otherwise a bucket whose cold permits take longer would stay cold forever.
func (w *idealWarmUp) charge(now time.Duration, n int64) (int64, int64) {
	w.idle(now)
	burst := new(big.Rat).Mul(big.NewRat(w.burst, 1), w.stable)
	end := new(big.Rat).Add(big.NewRat(int64(now), 1), burst)
	end = maxRat(w.free, end.Add(end, maxRat(burst, big.NewRat(int64(time.Minute), 1))))
	room := new(big.Rat).Sub(end, w.free)
	if w.cost(n).Cmp(room) <= 0 {
		return n, w.takePermits(now, now, n)
	}
	var taken int64 // the cost rises with n
	for low, high := int64(0), n; low < high; {
		if mid := (low + high + 1) / 2; w.cost(mid).Cmp(room) <= 0 {
			low, taken = mid, mid
		} else {
			high = mid - 1
		}
	}
	part := new(big.Rat).Sub(room, w.cost(taken))
	part.Quo(part, new(big.Rat).Sub(w.cost(taken+1), w.cost(taken)))
	part.Add(part, big.NewRat(taken, 1))
	w.free, w.stored = end, new(big.Rat).Sub(w.stored, minRat(w.stored, part))
	return taken, 0
}

// giveBack does nothing: a bucket that warms up takes no returns.
func (w *idealWarmUp) giveBack(time.Duration, int64, int64) {}

func (w *idealWarmUp) reset(now time.Duration) time.Duration {
	w.idle(now)
	due := new(big.Rat).Sub(w.free, big.NewRat(int64(now), 1))
	cold := new(big.Rat).Sub(w.maxStored, w.stored)
	return ceilTick(due.Add(due, cold.Mul(cold, w.cool)), w.tick)
}
