package limiter

import (
	"fmt"
	"sync"
	"time"

	"github.com/hotparam/hotparam"
)

// Quotas of one family have one state of a key together, and a quota takes it over from
// another with all that was taken, reserved and owed. Those of different families stand
// side by side: what one knows says nothing about the other, so together a key is admitted
// their sum, and what one had granted is not granted again when it comes back.

// family is a number, and not a name, since each Result has room for one.
type family uint32

// Families of the algorithms that are built in. Those above are of algorithms of the
// user's own, one each.
const (
	_ family = iota // none is known
	unlimitedFamily
	bucketFamily
	warmUpFamily
	leakyFamily
	fixedFamily
	logFamily
	blocksFamily
	customFamily
)

// customFamilies numbers the algorithms of the user's own. They are never forgotten: a
// program has as many as its source names.
var customFamilies struct {
	sync.RWMutex // written once for each name
	byName       map[hotparam.Algorithm]family
}

// familyOf returns a valid quota's family: that of its algorithm, in the main.
func familyOf(q *hotparam.Quota) family {
	switch {
	case q.Burst == hotparam.Unlimited:
		return unlimitedFamily
	case q.Algorithm.Custom():
		return customFamilyOf(q.Algorithm)
	case q.WarmUp > 0:
		return warmUpFamily
	}
	switch q.Algorithm {
	case hotparam.LeakyBucket:
		return leakyFamily
	case hotparam.FixedWindow:
		return fixedFamily
	case hotparam.SlidingLog:
		return logFamily
	case hotparam.SlidingBlocks:
		return blocksFamily
	}
	return bucketFamily
}

func customFamilyOf(a hotparam.Algorithm) family {
	customFamilies.RLock()
	f, known := customFamilies.byName[a]
	customFamilies.RUnlock()
	if known {
		return f
	}
	customFamilies.Lock()
	defer customFamilies.Unlock()
	f, known = customFamilies.byName[a]
	if !known {
		if customFamilies.byName == nil {
			customFamilies.byName = make(map[hotparam.Algorithm]family)
		}
		f = customFamily + family(len(customFamilies.byName))
		customFamilies.byName[a] = f
	}
	return f
}

// side is the state of one family, and the quota that it is held to.
type side struct {
	family family
	quota  *hotparam.Quota
	state  State // nil: none yet
}

// sides are all states of one key. They are one goroutine's at a time.
type sides struct {
	side          // of the quota that holds
	others []side // of other families, in use still
}

// maxSides is how many other states are kept, which are as many as there are families,
// unless an algorithm of the user's own cannot adapt.
const maxSides = 16

// isStraight reports whether an ask of that kind under q goes to the state that holds, and
// changes nothing else: nearly all do, and whoever asks s.state saves a copy of its result.
func (s *sides) isStraight(q *hotparam.Quota, k Kind) bool { return s.quota == q && k < Return }

// algorithms tells the algorithm of a quota.
type algorithms interface {
	of(q *hotparam.Quota) (Algorithm, error)
}

// hold makes q the quota that holds. If it fails nothing has changed.
func (s *sides) hold(now time.Duration, q *hotparam.Quota, from algorithms) error {
	if s.quota != nil && *s.quota == *q {
		s.quota = q
		return nil
	}
	a, err := from.of(q)
	if err != nil {
		return err
	}
	next := side{family: familyOf(q), quota: q}
	if s.state != nil && s.family == next.family {
		if next.state = adapt(s.state, q, now); next.state != nil {
			s.side = next
			return nil
		}
	}
	for i := range s.others {
		o := &s.others[i]
		if o.family != next.family {
			continue
		}
		if next.state = o.state; *o.quota != *q {
			next.state = adapt(o.state, q, now)
		}
		if next.state != nil {
			s.others = append(s.others[:i], s.others[i+1:]...)
			s.push(now)
			s.side = next
			return nil
		}
	}
	if next.state = a.New(q, now); next.state == nil {
		return errNoState(q)
	}
	s.push(now)
	s.side = next
	return nil
}

func errNoState(q *hotparam.Quota) error {
	return fmt.Errorf("limiter: algorithm %q makes no state: %w", q.Algorithm, ErrUnsupported)
}

// push puts the state that held among the others, while it is in use, and drops those of
// them that are as good as new.
func (s *sides) push(now time.Duration) {
	kept := s.others[:0]
	for _, o := range append(s.others, s.side) {
		if o.state != nil && o.state.FreshAfter(now) > 0 {
			kept = append(kept, o)
		}
	}
	if len(kept) > maxSides {
		kept = kept[1:]
	}
	clear(kept[len(kept):cap(kept)])
	s.others = kept
}

// do asks under q, which holds from then on; but what is given back goes to where it was
// taken, and no quota changes.
func (s *sides) do(now time.Duration, q *hotparam.Quota, from algorithms, ask *Ask) (Result, error) {
	switch {
	case ask.Kind == Forget:
		*s, ask = sides{}, &Ask{Kind: Peek}
	case ask.Kind == Return && ask.N >= 0 && s.state != nil:
		return s.giveBack(now, q, ask), nil
	}
	if s.quota != q {
		if err := s.hold(now, q, from); err != nil {
			return Result{}, err
		}
	}
	return s.state.Do(now, *ask), nil
}

func (s *sides) giveBack(now time.Duration, q *hotparam.Quota, ask *Ask) Result {
	family := ask.Receipt.state
	if family == 0 {
		family = familyOf(q)
	}
	if s.family == family {
		return s.state.Do(now, *ask)
	}
	for i := range s.others {
		if o := &s.others[i]; o.family == family {
			return o.state.Do(now, *ask)
		}
	}
	return s.state.Do(now, Ask{Kind: Peek})
}

// absorber is a state that can take in what another one of its family knows.
type absorber interface {
	absorb(other State, now time.Duration) bool
}

// put adds a state that comes from elsewhere.
func (s *sides) put(o side, now time.Duration) {
	if s.state == nil {
		s.side = o
		return
	}
	for i := -1; i < len(s.others); i++ {
		known := &s.side
		if i >= 0 {
			known = &s.others[i]
		}
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
	s.others = append(s.others, o)
}

// freshAfter is how long until all of them are as good as new.
func (s *sides) freshAfter(now time.Duration) (d time.Duration) {
	if s.state != nil {
		d = s.state.FreshAfter(now)
	}
	for _, o := range s.others {
		d = max(d, o.state.FreshAfter(now))
	}
	return d
}
