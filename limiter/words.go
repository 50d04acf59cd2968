package limiter

import (
	"encoding/binary"
	"time"

	"github.com/hotparam/hotparam"
)

// words is the algorithm of a quota whose state is one word: token bucket, GCRA and
// leaky bucket. Its keys share the arithmetic.
type words struct {
	quota hotparam.Quota
	*gcra
}

func newWords(q *hotparam.Quota) (Algorithm, error) {
	g, err := ofQuota(q)
	if err != nil {
		return nil, err
	}
	return &words{*q, g}, nil
}

func (a *words) New(q *hotparam.Quota, now time.Duration) State {
	g := a.gcra
	if *q != a.quota {
		other, err := ofQuota(q)
		if err != nil {
			return nil
		}
		g = other
	}
	t := instant(now)
	return &wordState{gcra: g, clock: clock{t}, word: g.first(0, t)}
}

// wordState is one key's word, for one goroutine at a time. As it knows when it was
// last asked, it tells a clock that was reset at once, and keeps what was taken.
type wordState struct {
	*gcra
	clock
	word int64
}

// at is the instant to reckon with, and how far the clock is behind it.
func (s *wordState) at(now time.Duration) (t, lag int64) {
	t, lag, leap := s.tell(now)
	if leap != 0 {
		s.word = max(0, s.word+leap)
	}
	return t, lag
}

func (s *wordState) Do(now time.Duration, ask Ask) Result {
	t, lag := s.at(now)
	ask.clamp()
	ask.Within -= time.Duration(lag)
	next, v, taken := s.ask(s.word, t, &ask)
	s.word = next
	r := Result{Decision: s.decision(v), Taken: taken}
	if lag > 0 {
		if ask.Kind == Reserve && v.wait > 0 {
			r.RetryAfter -= time.Duration(lag) // it has been reckoned with
		}
		r.behind(lag)
	}
	return r
}

// behind makes what is waited for take longer by how far the clock is behind.
func (r *Result) behind(lag int64) {
	for _, d := range []*time.Duration{&r.RetryAfter, &r.ResetAfter, &r.Delay} {
		if *d > 0 {
			*d += time.Duration(lag)
		}
	}
}

func (s *wordState) FreshAfter(now time.Duration) time.Duration {
	t, lag := s.at(now)
	if s.word <= t {
		return 0
	}
	return time.Duration(s.word - t + lag)
}

func (s *wordState) Adapt(q *hotparam.Quota, now time.Duration) bool {
	if !bucketed(q) || (q.Algorithm == hotparam.LeakyBucket) != s.leaky {
		return false
	}
	g, err := ofQuota(q)
	if err != nil {
		return false
	}
	if heir := s.successor.Load(); heir != nil && heir.same(g) {
		g = heir // other keys have gone on with it
	} else {
		s.succeed(g, 0)
	}
	t, _ := s.at(now)
	s.word = g.adapted(s.gcra, s.word, t)
	s.gcra = g
	return true
}

func (s *wordState) appendState(b []byte) []byte {
	b = binary.AppendVarint(b, s.last)
	return binary.AppendVarint(b, s.word)
}

func (s *wordState) restoreState(b []byte) bool {
	last, word, ok := twoInstants(b)
	if ok {
		s.last, s.word = last, word
		s.reach(word - last)
	}
	return ok
}

// twoInstants decodes the latest instant that a state was told and one that it waits
// for; false if they can be no state's.
func twoInstants(b []byte) (last, until int64, ok bool) {
	last, n := binary.Varint(b)
	if n <= 0 {
		return 0, 0, false
	}
	until, m := binary.Varint(b[n:])
	if m <= 0 || n+m != len(b) || last < 0 || last > maxNow || until < 0 || until-last > maxFill+maxDebt {
		return 0, 0, false
	}
	return last, until, true
}
