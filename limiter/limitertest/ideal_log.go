package limitertest

import "time"

// idealLog is a list of all takes, each permit with the instant of its use. Any span of per holds
// at most limit of them. Sliding blocks are a log whose instants are the begins of blocks.
type idealLog struct {
	limit   int64
	per     time.Duration
	block   time.Duration // length whose multiples all instants are
	clipped bool          // whether more was charged than a backend must remember, so that returns have no effect
	marks   int64
	entries []logged // oldest first
}

type logged struct {
	instant time.Duration
	n       int64
	mark    int64
}

func newIdealLog(limit int64, per, block time.Duration) *idealLog {
	return &idealLog{limit: limit, per: per, block: block}
}

// count returns the number of permits in the span of per that ends at t, and after it.
func (l *idealLog) count(t time.Duration) int64 {
	var sum int64
	for _, e := range l.entries {
		if e.instant > l.blockStart(t)-l.per {
			sum += e.n
		}
	}
	return sum
}

func (l *idealLog) blockStart(t time.Duration) time.Duration { return t - t%l.block }

func (l *idealLog) available(now time.Duration) int64 { return max(0, l.limit-l.count(now)) }

// wait tries the instants at which permits leave the span.
func (l *idealLog) wait(now time.Duration, n int64) time.Duration {
	if l.count(now)+n <= l.limit {
		return 0
	}
	for _, e := range l.entries {
		if t := e.instant + l.per; t > now && l.count(t)+n <= l.limit {
			return t - now
		}
	}
	panic("limitertest: an ideal log never frees a permit")
}

func (l *idealLog) delay(time.Duration) time.Duration { return 0 }

// takePermits adds permits in order: no permit is taken before a reserved one.
func (l *idealLog) takePermits(_, instant time.Duration, n int64) int64 { return l.add(instant, n) }

// charge may exceed the limit. Only the newest permits, up to limit, affect decisions, and a
// backend may drop the others.
func (l *idealLog) charge(now time.Duration, n int64) (int64, int64) {
	mark := l.add(now, n)
	l.clipped = l.clipped || l.count(now) > l.limit
	return n, mark
}

func (l *idealLog) add(instant time.Duration, n int64) int64 {
	l.marks++
	e := logged{instant: l.blockStart(instant), n: n, mark: l.marks}
	i := len(l.entries)
	for i > 0 && l.entries[i-1].instant > e.instant { // a charge comes before reservations
		i--
	}
	l.entries = append(l.entries[:i], append([]logged{e}, l.entries[i:]...)...)
	return l.marks
}

func (l *idealLog) giveBack(_ time.Duration, mark, n int64) {
	for i := range l.entries {
		if e := &l.entries[i]; e.mark == mark {
			e.n -= min(n, e.n)
		}
	}
}

func (l *idealLog) reset(now time.Duration) time.Duration {
	var last time.Duration
	for _, e := range l.entries {
		if e.n > 0 {
			last = max(last, e.instant+l.per-now)
		}
	}
	return last
}
