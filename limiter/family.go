package limiter

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Quotas of one family share one state of a key. A quota takes the state over from another
// quota of its family, with all permits taken, reserved and owed. States of different families
// are kept side by side, since they do not convert. Together they admit the sum, and a state
// that is used again still knows what it granted.

// family is a number and not a name, since each Result has one.
type family uint32

// Families of the built-in algorithms. Numbers from customFamily on are custom algorithms, by the
// hash of their name: one each, but for a chance of 1 in 2³¹ for two names of a program.
const (
	_ family = iota // none is known
	unlimitedFamily
	bucketFamily
	warmUpFamily
	leakyFamily
	fixedFamily
	logFamily
	blocksFamily
	customFamily family = 1 << 31
)

// familyOf returns the family of a valid quota, which is mostly that of its algorithm.
func familyOf(q *rules.Quota) family {
	switch {
	case q.Burst == rules.Unlimited:
		return unlimitedFamily
	case q.Algorithm.Custom():
		return customFamily | family(rules.Hash([]byte(q.Algorithm)))
	case q.WarmUp > 0:
		return warmUpFamily
	}
	switch q.Algorithm {
	case rules.LeakyBucket:
		return leakyFamily
	case rules.FixedWindow:
		return fixedFamily
	case rules.SlidingLog:
		return logFamily
	case rules.SlidingBlocks:
		return blocksFamily
	}
	return bucketFamily
}

// side is the state of one family, and the quota it is under.
type side struct {
	family family
	quota  *rules.Quota
	state  State // nil if there is none yet
}

// sides are all states of one key, for one goroutine at a time.
type sides struct {
	side         // the state of the quota in force
	more *[]side // states of other families that are still in use; nil if there are none
}

func (s *sides) others() []side {
	if s.more == nil {
		return nil
	}
	return *s.more
}

func (s *sides) setOthers(all []side) {
	if len(all) == 0 {
		s.more = nil
		return
	}
	s.more = &all
}

// maxSides bounds the other states. There are as many as families, unless a custom algorithm
// cannot adapt.
const maxSides = 16

// isStraight reports whether an ask of that kind under q concerns only the current state, as
// nearly all do. Asking s.state directly saves a copy of its result.
func (s *sides) isStraight(q *rules.Quota, k OpKind) bool { return s.quota == q && k < Return }

// algorithms finds the algorithm of a quota.
type algorithms interface {
	algorithmFor(q *rules.Quota) (Algorithm, error)
}

// setQuota puts q in force. If it fails, nothing has changed.
func (s *sides) setQuota(now time.Duration, q *rules.Quota, from maker) error {
	if s.quota != nil && *s.quota == *q {
		s.quota = q
		return nil
	}
	a, err := from.algorithmFor(q)
	if err != nil {
		return err
	}
	next := side{family: familyOf(q), quota: q}
	if s.state != nil && s.family == next.family {
		if next.state = adapt(s.state, a, q, now); next.state != nil {
			s.side = next
			return nil
		}
	}
	others := s.others()
	for i := range others {
		o := &others[i]
		if o.family != next.family {
			continue
		}
		if next.state = o.state; *o.quota != *q {
			next.state = adapt(o.state, a, q, now)
		}
		if next.state != nil {
			s.setOthers(append(others[:i], others[i+1:]...))
			s.push(now)
			s.side = next
			return nil
		}
	}
	if next.state, _, err = from.create(a, q, now); err != nil {
		return err
	}
	s.push(now)
	s.side = next
	return nil
}

func errNoState(q *rules.Quota) error {
	return fmt.Errorf("limiter: algorithm %q makes no state: %w", q.Algorithm, ErrUnsupported)
}

// push moves the current state to the others if it is in use, and drops all that equal new
// ones.
func (s *sides) push(now time.Duration) {
	kept := s.others()[:0]
	for _, o := range append(s.others(), s.side) {
		if o.state != nil && o.state.FreshAfter(now) > 0 {
			kept = append(kept, o)
		}
	}
	if len(kept) > maxSides {
		kept = kept[1:]
	}
	clear(kept[len(kept):cap(kept)])
	s.setOthers(kept)
}

// do executes ask under q, which is in force from then on. A Return goes to the state that its
// permits were taken from, and changes no quota.
func (s *sides) do(now time.Duration, q *rules.Quota, from maker, ask *Request) (Result, error) {
	switch {
	case ask.Kind == Forget:
		*s, ask, from.table = sides{}, &Request{Kind: Peek}, nil
	case ask.Kind == Return && ask.N >= 0 && s.state != nil:
		return s.giveBack(now, q, ask), nil
	}
	if s.quota != q {
		if err := s.setQuota(now, q, from); err != nil {
			return Result{}, err
		}
	}
	return s.state.Do(now, *ask), nil
}

func (s *sides) giveBack(now time.Duration, q *rules.Quota, ask *Request) Result {
	family := ask.Receipt.state
	if family == 0 {
		family = familyOf(q)
	}
	if s.family == family {
		return s.state.Do(now, *ask)
	}
	for _, o := range s.others() {
		if o.family == family {
			return o.state.Do(now, *ask)
		}
	}
	return s.state.Do(now, Request{Kind: Peek})
}

// absorber is a state that can merge another one of its family.
type absorber interface {
	absorb(other State, now time.Duration) bool
}

// addState adds a state that was kept elsewhere, and merges it with one of its family if possible.
func (s *sides) addState(o side, now time.Duration) {
	if s.state == nil {
		s.side = o
		return
	}
	for _, known := range append([]side{s.side}, s.others()...) {
		if known.family != o.family {
			continue
		}
		state := known.state
		if lock, ok := state.(*penalty); ok {
			state = lock.inner
		}
		if a, ok := state.(absorber); ok && a.absorb(o.state, now) {
			return
		}
	}
	s.setOthers(append(s.others(), o))
}

// freshAfter returns the time until all states equal new ones.
func (s *sides) freshAfter(now time.Duration) (d time.Duration) {
	if s.state != nil {
		d = s.state.FreshAfter(now)
	}
	for _, o := range s.others() {
		d = max(d, o.state.FreshAfter(now))
	}
	return d
}
