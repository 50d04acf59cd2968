package limiter

import (
	"math"
	"sort"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// warm is the arithmetic of a token bucket that warms up: SmoothWarmingUp of Guava's
// RateLimiter, with the cold factor free.
//
// Unused permits are stored, up to maxStored. The more are stored, the colder the bucket. A stored
// permit costs between the stable interval and the cold one, on a slope that begins at the
// threshold:
//
//	interval
//	 cold  +                  /
//	       |                /
//	       |              /
//	stable +------------/
//	       0     threshold maxStored  stored permits
//
// So going from maxStored down to the threshold takes a warm-up's time, the trapezoid's area. Going
// from there to none takes half of it if the cold factor is 3. A new bucket is cold, and an
// idle one becomes cold in a warm-up's time. Taking n permits costs the area to the left of the
// stored ones, and the stable interval for each beyond. It is paid afterwards: the state is the
// instant from which the next permits may be taken.
//
// A burst is as for GCRA: a take may cost up to burst stable intervals beyond now. A take that
// costs more than that on its own, since the bucket is cold, has to wait until all before it is
// paid. So a burst of 1 is Guava's tryAcquire.
type warm struct {
	*gcra                        // the stable interval, the burst and the bounds
	maxStored, threshold float64 // permits
	slope                float64 // additional ns that a permit costs for each one that is stored above the threshold
	cool                 float64 // ns in which an idle bucket stores a permit
	length               time.Duration
	factor               float64
}

func newWarm(q *rules.Quota) (warm, error) {
	full := q.WithDefaults()
	g, err := newGCRA(&full)
	if err != nil {
		return warm{}, err
	}
	stable, length, factor := float64(g.interval), float64(q.WarmUp), full.ColdFactor
	w := warm{gcra: g, length: q.WarmUp, factor: factor}
	w.threshold = length / (factor - 1) / stable
	w.maxStored = w.threshold + 2*length/(1+factor)/stable
	w.slope = (factor - 1) * stable / (w.maxStored - w.threshold)
	w.cool = length / w.maxStored
	return w, nil
}

// cost returns the cost of n permits in ns, while stored permits are stored. It is rounded up,
// so that a bucket never admits more than its rate. It never falls with n nor with stored.
func (w *warm) cost(stored float64, n int64) int64 {
	extra := 0.0 // above the stable interval; less than a warm-up in all
	if above := stored - w.threshold; above > 0 {
		take := min(above, float64(n))
		extra = w.slope * take * (above - take/2)
	}
	return n*w.interval + int64(math.Ceil(extra))
}

// warmState is one key's state, for one goroutine at a time. The stored permits are a float64,
// whose error is far below a nanosecond's worth; instants are whole nanoseconds. The word of
// its line is the instant from which the next permits may be taken.
type warmState struct {
	warm
	clock
	warmth
}

// warmth is a key's state at the last take. Requests that take nothing do not change it, so that
// rounding errors do not add up.
type warmth struct {
	takeLine
	stored float64 // permits at the word
}

func newWarmUp(q *rules.Quota, now time.Duration) State {
	w, err := newWarm(q)
	if err != nil {
		return nil
	}
	t := instant(now)
	return &warmState{w, clock{t}, warmth{takeLine{word: t, born: t}, w.maxStored}}
}

// advance returns the instant to compute with, and how far the clock is behind it.
func (s *warmState) advance(now time.Duration) (t, lag int64) {
	t, lag, leap := s.observe(now)
	if leap != 0 {
		s.moveInstants(leap, t)
	}
	return t, lag
}

// storeIdle stores the permits that were not used up to t.
func (s *warmState) storeIdle(t int64) {
	if t > s.word {
		s.stored = min(s.maxStored, s.stored+float64(t-s.word)/s.cool)
		s.word = t
	}
}

// wait returns the time until n permits can be taken. n is not more than a burst.
func (s *warmState) wait(t, n int64) int64 {
	owed := s.word - t
	if cost := s.cost(s.stored, n); cost <= s.fill {
		return max(0, owed+cost-s.fill)
	}
	return owed
}

// free returns the number of permits that can be taken.
func (s *warmState) free(t int64) int64 {
	if s.word <= t {
		return s.burst
	}
	return s.within(s.fill - (s.word - t))
}

// takePermits takes n permits, whether they are due or not.
func (s *warmState) takePermits(n int64) {
	s.word += s.cost(s.stored, n)
	s.stored = max(0, s.stored-float64(n))
}

// charge takes n permits, or as many as may be owed, and returns their number. The owed part of
// the permit at which that limit is reached counts, and warms the bucket, too. Otherwise a
// bucket whose cold permits cost more than the limit would stay cold for ever, and charge
// nothing.
func (s *warmState) charge(t, n int64) int64 {
	end := max(t+s.fill+s.debt, s.word)
	room := end - s.word
	taken := s.within(room)
	if n <= taken {
		s.takePermits(n)
		return n
	}
	cost := s.cost(s.stored, taken)
	part := float64(room-cost) / float64(s.cost(s.stored, taken+1)-cost)
	s.word, s.stored = end, max(0, s.stored-float64(taken)-part)
	return taken
}

// within returns how many permits cost no more than room.
func (s *warmState) within(room int64) int64 {
	limit := int(max(0, room) / s.interval)
	return int64(sort.Search(limit, func(n int) bool { return s.cost(s.stored, int64(n)+1) > room }))
}

func (s *warmState) Do(now time.Duration, ask Request) Result {
	t, lag := s.advance(now)
	ask.clamp()
	before := s.warmth
	offsets := s.includeReservations(t)
	s.storeIdle(t)
	r := Result{Decision: rules.Decision{Limit: s.burst}}
	s.do(t, &ask, &r)
	if r.Reason = rules.ReasonLimited; r.Allowed {
		r.Reason = rules.ReasonWithin
	}
	r.Remaining = s.free(t)
	r.ResetAfter = s.fresh(t)
	s.excludeReservations(offsets)
	switch {
	case r.Taken > 0:
		r.setMark(s.mark(), t)
		if r.Delay > 0 {
			s.recordPromise(t+int64(r.Delay), offsets)
		}
	case !r.Allowed || ask.Kind != Return && ask.Kind != Charge || ask.N == 0:
		s.warmth = before
	}
	if lag > 0 {
		r.extendWaits(lag)
	}
	return r
}

func (s *warmState) do(t int64, ask *Request, r *Result) {
	n := ask.N
	switch {
	case !ask.valid():
		return
	case n == 0:
		r.Allowed = true
		return
	case ask.Kind == Charge:
		r.Allowed, r.Taken = true, s.charge(t, n)
		return
	case ask.Kind == Return:
		// Permits are returned at the stable interval. Their extra cost has warmed the bucket,
		// which stays warm.
		s.returnTokens(&s.takeLine, t, ask)
		r.Allowed = true
		return
	case ask.Kind == AtMost:
		n = max(1, min(n, s.free(t)-ask.Keep))
	}
	if n > s.burst-ask.Keep {
		return
	}
	wait := s.wait(t, n+ask.Keep)
	if within := min(int64(ask.Within), maxAhead); wait > 0 && ask.Kind == Reserve && wait <= within {
		r.Delay, wait = time.Duration(wait), 0
	} else if ask.Kind == Reserve && wait > 0 {
		wait -= within
	}
	if r.RetryAfter = time.Duration(wait); wait > 0 {
		return
	}
	r.Allowed = true
	if ask.Kind != Peek {
		s.takePermits(n)
		r.Taken = n
	}
}

// fresh returns the time until all is paid and the bucket is cold again.
func (s *warmState) fresh(t int64) time.Duration {
	return time.Duration(s.word - t + int64(math.Ceil((s.maxStored-s.stored)*s.cool)))
}

func (s *warmState) FreshAfter(now time.Duration) time.Duration {
	t, lag := s.advance(now)
	before := s.warmth
	s.includeReservations(t)
	s.storeIdle(t)
	d := s.fresh(t)
	s.warmth = before
	if d > 0 {
		d += time.Duration(lag)
	}
	return d
}

// owes implements [debtor]. A bucket that was evicted is cold when it returns, so its whole
// debt is the time from which the next permit may be taken.
func (s *warmState) owes(now time.Duration) (owed debt, spent bool) {
	t, _ := s.advance(now)
	return s.takeLine.owes(s.gcra, t)
}

// indebt implements [debtor].
func (s *warmState) indebt(owed *debt, now time.Duration) {
	t, _ := s.advance(now)
	s.takeLine.indebt(s.gcra, owed, t)
}

func (s *warmState) Adapt(q *rules.Quota, now time.Duration) bool {
	w, err := newWarm(q)
	if err != nil {
		return false
	}
	t, _ := s.advance(now)
	s.storeIdle(t)
	w.convertLine(s.gcra, &s.takeLine, t)
	s.stored *= w.maxStored / s.maxStored // so that it stays as warm as before
	s.warm = w
	return true
}

func (s *warmState) numbers() []int64 {
	return append([]int64{s.last, s.word, int64(math.Float64bits(s.stored))}, s.rest()...)
}

func (s *warmState) setNumbers(n []int64) bool {
	if len(n) < 3 || !areInstants(n) || !s.setRest(n[3:]) {
		return false
	}
	s.last, s.word, s.stored, s.born = n[0], n[1], math.Float64frombits(uint64(n[2])), 0
	return s.stored >= 0 && s.stored <= s.maxStored
}
