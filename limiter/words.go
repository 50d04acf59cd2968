package limiter

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// words is the algorithm of quotas whose state is one word: token bucket, GCRA and leaky
// bucket. Its keys share the arithmetic.
type words struct {
	quota rules.Quota
	*gcra
}

func newWords(q *rules.Quota) (Algorithm, error) {
	g, err := newGCRA(q)
	if err != nil {
		return nil, err
	}
	return &words{*q, g}, nil
}

func (a *words) New(q *rules.Quota, now time.Duration) State {
	g := a.gcra
	if *q != a.quota {
		other, err := newGCRA(q)
		if err != nil {
			return nil
		}
		g = other
	}
	t := instant(now)
	return &wordState{g, clock{t}, takeLine{word: g.first(t), born: t}}
}

// wordState is one key's line, for one goroutine at a time. It keeps the time of the last ask,
// so it detects at once a clock that was reset, and keeps the takes.
type wordState struct {
	*gcra
	clock
	takeLine
}

// advance returns the instant to use at now, and how far the clock is behind that instant.
func (s *wordState) advance(now time.Duration) (t, lag int64) {
	t, lag, leap := s.observe(now)
	if leap != 0 {
		s.moveInstants(leap, t)
	}
	return t, lag
}

func (s *wordState) Do(now time.Duration, ask Request) Result {
	t, lag := s.advance(now)
	ask.clamp()
	ask.Within -= time.Duration(lag)
	if ask.Kind == Return && ask.N >= 0 {
		s.returnTokens(&s.takeLine, t, &ask)
		ask = Request{Kind: Peek}
	}
	offsets := s.includeReservations(t)
	next, v, taken := s.execute(s.word, t, &ask)
	s.word = next
	s.excludeReservations(offsets)
	r := Result{Decision: s.decision(v), Taken: taken}
	if taken > 0 {
		r.setMark(s.mark(), t)
		if v.delay > 0 {
			s.recordPromise(t+v.delay, offsets)
		}
	}
	if lag > 0 {
		retry := r.RetryAfter
		r.extendWaits(lag)
		if ask.Kind == Reserve {
			r.RetryAfter = retry // it has lag already, since ask.Within was reduced by it
		}
	}
	return r
}

// extendWaits extends the result's waits by lag, which is how far the clock is behind.
func (r *Result) extendWaits(lag int64) {
	for _, d := range []*time.Duration{&r.RetryAfter, &r.ResetAfter, &r.Delay} {
		if *d > 0 {
			*d += time.Duration(lag)
		}
	}
}

func (s *wordState) FreshAfter(now time.Duration) time.Duration {
	t, lag := s.advance(now)
	word := max(s.word, s.late)
	if word <= t {
		return 0
	}
	return time.Duration(word - t + lag)
}

// owes implements [debtor].
func (s *wordState) owes(now time.Duration) (owed debt, spent bool) {
	t, _ := s.advance(now)
	return s.takeLine.owes(s.gcra, t)
}

// indebt implements [debtor].
func (s *wordState) indebt(owed *debt, now time.Duration) {
	t, _ := s.advance(now)
	s.takeLine.indebt(s.gcra, owed, t)
}

// absorb adds the permits that other lacks.
func (s *wordState) absorb(other State, now time.Duration) bool {
	o, ok := other.(*wordState)
	if !ok {
		return false
	}
	t, _ := s.advance(now)
	from, _ := o.advance(now)
	if missing := o.word - from; missing > 0 {
		s.word = max(s.word, t) + rescaled(missing, s.interval, o.interval)
	}
	return true
}

// Adapt implements [quotaSwitcher] with arithmetic of its own. The package's own quotas share
// theirs: see the function adapt.
func (s *wordState) Adapt(q *rules.Quota, now time.Duration) bool {
	g, err := newGCRA(q)
	if err == nil {
		s.adapt(g, now)
	}
	return err == nil
}

func (s *wordState) adapt(g *gcra, now time.Duration) {
	t, _ := s.advance(now)
	g.convertLine(s.gcra, &s.takeLine, t)
	s.gcra = g
}

// setMark sets the mark and the instant of a take.
func (r *Result) setMark(mark, t int64) { r.Mark, r.Receipt.At = mark, time.Duration(t) }

// numbers returns the word and the fields that Returns and another quota need. A line without these
// is two numbers.
func (s *wordState) numbers() []int64 { return append([]int64{s.last, s.word}, s.rest()...) }

func (s *wordState) setNumbers(n []int64) bool {
	if !areInstants(n) || !s.setRest(n[2:]) {
		return false
	}
	s.last, s.word, s.born = n[0], n[1], 0
	return true
}

// areInstants reports whether numbers begin with the latest instant of a state's clock and one that
// the state waits for.
func areInstants(n []int64) bool {
	return len(n) >= 2 && 0 <= n[0] && n[0] <= maxNow && n[1] >= 0 && n[1]-n[0] <= maxFill+maxDebt
}
