package collector

import (
	"math"
	"time"
	"unsafe"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/floor"
	"github.com/hotparam/hotparam/internal/keytext"
)

// profile is what the collector has to know of a rule, or of a rule as one of
// its exceptions changes it, to judge a key.
type profile struct {
	rule   *hotparam.Rule // nil: none that is known
	limit  *hotparam.Limit
	groups *groups // of a rule with a share whose receiver wants them; else nil
	levels []level
	keep   int64 // the longest window, in ns: a count that is held longer leaves

	absolute bool // some level compares with a count alone
	jumps    bool // some level compares with what was before
}

// level is one of a profile's thresholds.
type level struct {
	*hotparam.Threshold
	window hotparam.Window
	n      int64   // the count that is hot, or the least that can be
	exit   int64   // the count below which a hot key cools
	mark   float64 // the count at this instance from which on a key is a candidate
}

// cause is the threshold as it is told of a key that is hot by it.
func (l *level) cause(unit hotparam.Unit) hotparam.Cause {
	c := l.Cause(unit)
	c.Rate.N = l.n
	return c
}

// profiles are those of all rules.
type profiles struct {
	all      []profile
	rules    map[string]uint32 // id → profile
	except   map[*hotparam.Exception]uint32
	totals   map[uint32]uint32 // profile of a rule with totals → that of these, which are never hot
	repeated map[uint32]uint32 // profile of a rule with a share → that of what counts once too often
	groups   []*groups         // of the rules with a share
	levels   int               // the most that a profile has
	lowest   float64           // of all marks; infinite without any
}

// Numbers of profiles. That a slot has none yet is 0, which is its zero value.
const (
	unseen  uint32 = iota
	unknown        // the key is of no rule that is known
)

// newProfiles makes those of rules; groups: what is held back of groups is told.
func newProfiles(rules *hotparam.Rules, groups bool) *profiles {
	p := &profiles{
		all:      make([]profile, unknown+1),
		rules:    make(map[string]uint32),
		except:   make(map[*hotparam.Exception]uint32),
		totals:   make(map[uint32]uint32),
		repeated: make(map[uint32]uint32),
	}
	p.all[unknown].keep = int64(hotparam.MaxWindow)
	if rules != nil {
		for i := range rules.Rules {
			p.add(&rules.Rules[i], groups)
		}
	}
	p.setInstances(1)
	return p
}

func (p *profiles) add(rule *hotparam.Rule, groups bool) {
	n := uint32(len(p.all))
	p.rules[rule.ID] = n
	p.all = append(p.all, newProfile(rule, nil))
	for i := range rule.Except {
		x := &rule.Except[i]
		p.except[x] = uint32(len(p.all))
		p.all = append(p.all, newProfile(rule, x))
	}
	if rule.Overlaps() {
		p.totals[n] = uint32(len(p.all))
		p.all = append(p.all, profile{rule: rule, keep: p.all[n].keep})
	}
	if groups && rule.HasShare() {
		g := newGroups(rule)
		p.groups = append(p.groups, g)
		p.repeated[n] = uint32(len(p.all))
		p.all = append(p.all, profile{rule: rule, keep: p.all[n].keep, groups: g})
		p.all[n].groups = g
		for i := range rule.Except {
			p.all[p.except[&rule.Except[i]]].groups = g
		}
	}
	p.levels = max(p.levels, len(rule.Hot))
}

func newProfile(rule *hotparam.Rule, x *hotparam.Exception) profile {
	p := profile{rule: rule, limit: rule.Limit}
	if x != nil && x.Limit != nil {
		p.limit = x.Limit
	}
	for i := range rule.Hot {
		t := &rule.Hot[i]
		p.keep = max(p.keep, int64(t.Rate.Per))
		if x != nil && x.Action == hotparam.Allow {
			continue // never hot
		}
		l := level{Threshold: t, window: t.Window(), n: t.Rate.N, exit: t.ExitCount(t.Rate.N)}
		if x != nil && x.Rate.N > 0 && x.Rate.Per == t.Rate.Per && t.Kind == hotparam.Absolute {
			l.n, l.exit = x.Rate.N, t.ExitCount(x.Rate.N)
		}
		p.levels = append(p.levels, l)
		p.absolute = p.absolute || t.Kind == hotparam.Absolute
		p.jumps = p.jumps || t.Kind == hotparam.Jump
	}
	if p.keep == 0 {
		p.keep = int64(hotparam.MaxWindow)
	}
	return p
}

// candidateShare is the part of a threshold that, evenly spread over the
// instances, makes a key a candidate.
const candidateShare = 4

// setInstances sets the marks: however a threshold's count is spread over n
// instances, three quarters of it come to those where it makes a candidate.
func (p *profiles) setInstances(n int) {
	p.lowest = math.Inf(1)
	for i := range p.all {
		levels := p.all[i].levels
		for j := range levels {
			l := &levels[j]
			l.mark = max(1, float64(l.n)/float64(candidateShare*max(1, n)))
			p.lowest = min(p.lowest, l.mark)
		}
	}
}

// of is the number of a key's profile.
func (p *profiles) of(rule, text []byte) uint32 {
	n, ok := p.rules[string(rule)]
	if !ok {
		return unknown
	}
	if keytext.IsAgain(text) { // which is no key's name, and never hot
		return max(unknown, p.repeated[n])
	}
	if total := p.totals[n]; total != 0 && keytext.IsTotal(text) {
		return total
	}
	if r := p.all[n].rule; len(r.Except) > 0 && len(text) > 0 {
		if x := r.Exception(unsafe.String(&text[0], len(text))); x != nil {
			return p.except[x]
		}
	}
	return n
}

// recent is how often a key came of late at this instance: in the present of two
// stretches as long as a window, and in the one before.
type recent struct {
	cur, prev uint64
	stretch   int64
}

// count adds n counts of at and tells the key's load: the highest of its counts
// in a window, as a multiple of the window's mark. It counts the whole stretch
// before the present one, so it is never below the truth.
func (p *profile) count(recents []recent, n uint64, at int64) (load float64) {
	for i := range p.levels {
		l, r := &p.levels[i], &recents[i]
		switch stretch := floor.Div(at, int64(l.Rate.Per)); {
		case stretch == r.stretch:
		case stretch == r.stretch+1:
			*r = recent{0, r.cur, stretch}
		case stretch > r.stretch:
			*r = recent{stretch: stretch}
		default: // the clock was set back: nothing is forgotten
			r.stretch = stretch
		}
		r.cur += n
		load = max(load, float64(r.cur+r.prev)/l.mark)
	}
	return load
}

// load is the key's load without a count.
func (p *profile) load(recents []recent) (load float64) {
	for i := range p.levels {
		load = max(load, float64(recents[i].cur+recents[i].prev)/p.levels[i].mark)
	}
	return load
}

// sliding is the load as it most likely is at the time of the last count: of the
// stretch before, the part that is still in the window. Where count's estimate
// rises and falls with the stretches of a steady key, this one is steady.
func (p *profile) sliding(recents []recent, at int64) (load float64) {
	for i := range p.levels {
		load = max(load, recents[i].sliding(&p.levels[i], at)/p.levels[i].mark)
	}
	return load
}

func (r *recent) sliding(l *level, at int64) float64 {
	past := float64(at-r.stretch*int64(l.Rate.Per)) / float64(l.Rate.Per)
	return float64(r.cur) + float64(r.prev)*min(1, max(0, 1-past))
}

// missing is how many counts more bring the load, as count tells it, to target.
func (p *profile) missing(recents []recent, target float64) uint64 {
	least := uint64(never)
	for i := range p.levels {
		least = min(least, gap(target*p.levels[i].mark, float64(recents[i].cur+recents[i].prev)))
	}
	return least
}

// missingSliding is the same for the load as sliding tells it.
func (p *profile) missingSliding(recents []recent, target float64, at int64) uint64 {
	least := uint64(never)
	for i := range p.levels {
		l := &p.levels[i]
		least = min(least, gap(target*l.mark, recents[i].sliding(l, at)))
	}
	return least
}

// gap is the least whole number, from 1 on, that lifts a count to a target.
func gap(target, count float64) uint64 {
	return toCount(target - count)
}

// toCount is a number as a count of at least 1, rounded up.
func toCount(f float64) uint64 {
	switch f = math.Ceil(f); {
	case f < 1:
		return 1
	case f >= 1<<62:
		return never
	}
	return uint64(f)
}

// instant is a time in nanoseconds since the Unix epoch as a time.
func instant(ns int64) time.Time { return time.Unix(0, ns) }
