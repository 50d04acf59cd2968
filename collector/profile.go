package collector

import (
	"math"
	"time"
	"unsafe"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// profile has the data of a rule, or of a rule with one of its exceptions, that the collector
// needs to handle a key.
type profile struct {
	rule   *rules.Rule // nil if the rule is unknown
	limit  *rules.Limit
	groups *heldGroups // for a rule with a share, if the receiver reads groups; otherwise nil
	levels []level
	keep   int64 // the longest window, in ns: counts held back for longer are dropped
	taken  int64 // sum of the counts of its keys

	absolute bool // whether some level has an absolute threshold
	jumps    bool // whether some level has a threshold of kind jump
}

// level is one of a profile's thresholds.
type level struct {
	*rules.Threshold
	window rules.Window
	n      int64   // the count at which a key is hot, or the least at which it can be hot
	exit   int64   // the count below which a hot key cools
	mark   float64 // the count at this instance at which a key is a candidate
}

// cause returns the threshold as the cause of a hot key.
func (l *level) cause(unit rules.Unit) published.Cause {
	c := published.CauseOf(l.Threshold, unit)
	c.Rate.N = l.n
	return c
}

// profiles holds the profiles of all rules.
type profiles struct {
	all      []profile
	rules    map[string]uint32 // id → profile
	except   map[*rules.Exception]uint32
	totals   map[uint32]uint32 // profile of a rule → profile of its totals, which are never hot
	repeated map[uint32]uint32 // profile of a rule with a share → profile of its repeated keys' counts
	groups   []*heldGroups     // groups of the rules with a share
	levels   int               // the highest number of levels of a profile
	lowest   float64           // the lowest mark of all; infinite if there is none
}

// Indices of profiles. A new slot has unseen, the zero value.
const (
	unseen  uint32 = iota
	unknown        // the rule is unknown
	gone           // the rule was known when counts were taken, and was removed since
)

// newProfiles returns the profiles of rules. groups is set if the receiver reads the held-back
// counts of groups.
func newProfiles(ruleset *rules.Rules, groups bool) *profiles {
	p := &profiles{
		all:      make([]profile, gone+1),
		rules:    make(map[string]uint32),
		except:   make(map[*rules.Exception]uint32),
		totals:   make(map[uint32]uint32),
		repeated: make(map[uint32]uint32),
	}
	p.all[unknown].keep = int64(rules.MaxWindow)
	p.all[gone].keep = int64(rules.MaxWindow)
	if ruleset != nil {
		for i := range ruleset.Rules {
			p.add(&ruleset.Rules[i], groups)
		}
	}
	p.setInstances(1)
	return p
}

func (p *profiles) add(rule *rules.Rule, groups bool) {
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

func newProfile(rule *rules.Rule, x *rules.Exception) profile {
	p := profile{rule: rule, limit: rule.Limit}
	if x != nil && x.Limit != nil {
		p.limit = x.Limit
	}
	for i := range rule.Hot {
		t := &rule.Hot[i]
		p.keep = max(p.keep, int64(t.Rate.Per))
		if x != nil && x.Action == rules.Allow {
			continue // never hot
		}
		if t.Kind == rules.Cost {
			continue // no count reaches it, so it makes no candidate
		}
		l := level{Threshold: t, window: t.Window(), n: t.Rate.N, exit: t.ExitCount(t.Rate.N)}
		if x != nil && x.Rate.N > 0 && x.Rate.Per == t.Rate.Per && t.Kind == rules.FixedRate {
			l.n, l.exit = x.Rate.N, t.ExitCount(x.Rate.N)
		}
		p.levels = append(p.levels, l)
		p.absolute = p.absolute || t.Kind == rules.FixedRate
		p.jumps = p.jumps || t.Kind == rules.Jump
	}
	if p.keep == 0 {
		p.keep = int64(rules.MaxWindow)
	}
	return p
}

// candidateShare is the divisor of the marks. With n instances, a key is a candidate at an
// instance that has counted 1/(candidateShare·n) of its threshold.
const candidateShare = 4

// setInstances sets the marks for n instances. However a threshold's count is spread over
// the instances, at least three quarters of it are at instances where the key is a
// candidate.
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

// indexOf returns the index of a key's profile.
func (p *profiles) indexOf(rule, text []byte) uint32 {
	n, ok := p.rules[string(rule)]
	if !ok {
		return unknown
	}
	if base.IsAgain(text) { // it is not a key, and never hot
		return max(unknown, p.repeated[n])
	}
	if total := p.totals[n]; total != 0 && base.IsTotal(text) {
		return total
	}
	if r := p.all[n].rule; len(r.Except) > 0 && len(text) > 0 {
		if x := r.Exception(unsafe.String(&text[0], len(text))); x != nil {
			return p.except[x]
		}
	}
	return n
}

// recent counts a key's recent occurrences at this instance. Time is divided into stretches as
// long as the window.
type recent struct {
	cur, prev uint64 // counts of the present stretch and of the previous one
	stretch   int64  // number of the present stretch
}

// count adds n counts at the time now, and returns the key's load: the highest count in a
// window, as a multiple of the window's mark. The load is an upper bound, since it includes all
// of the previous stretch.
func (p *profile) count(recents []recent, n uint64, now int64) (load float64) {
	for i := range p.levels {
		l, r := &p.levels[i], &recents[i]
		switch stretch := base.FloorDiv(now, int64(l.Rate.Per)); {
		case stretch == r.stretch:
		case stretch == r.stretch+1:
			*r = recent{0, r.cur, stretch}
		case stretch > r.stretch:
			*r = recent{stretch: stretch}
		default: // the clock was set back; no count is dropped
			r.stretch = stretch
		}
		r.cur += n
		load = max(load, float64(r.cur+r.prev)/l.mark)
	}
	return load
}

// load returns the load in the sense of count, without adding counts.
func (p *profile) load(recents []recent) (load float64) {
	for i := range p.levels {
		load = max(load, float64(recents[i].cur+recents[i].prev)/p.levels[i].mark)
	}
	return load
}

// sliding returns the most likely load at the time of the last count. It includes only the part
// of the previous stretch that is still in the window. For a key at a steady rate it is steady,
// unlike the bound of count, which changes with each stretch.
func (p *profile) sliding(recents []recent, now int64) (load float64) {
	for i := range p.levels {
		load = max(load, recents[i].sliding(&p.levels[i], now)/p.levels[i].mark)
	}
	return load
}

func (r *recent) sliding(l *level, now int64) float64 {
	past := float64(now-r.stretch*int64(l.Rate.Per)) / float64(l.Rate.Per)
	return float64(r.cur) + float64(r.prev)*min(1, max(0, 1-past))
}

// missing returns the number of further counts that raise the load of count to target.
func (p *profile) missing(recents []recent, target float64) uint64 {
	least := uint64(never)
	for i := range p.levels {
		least = min(least, gap(target*p.levels[i].mark, float64(recents[i].cur+recents[i].prev)))
	}
	return least
}

// missingSliding is like missing, but for the load of sliding.
func (p *profile) missingSliding(recents []recent, target float64, now int64) uint64 {
	least := uint64(never)
	for i := range p.levels {
		l := &p.levels[i]
		least = min(least, gap(target*l.mark, recents[i].sliding(l, now)))
	}
	return least
}

// gap returns the least whole number of at least 1 that raises a count to target.
func gap(target, count float64) uint64 {
	return toCount(target - count)
}

// toCount returns a number as a count: rounded up, and at least 1.
func toCount(f float64) uint64 {
	switch f = math.Ceil(f); {
	case f < 1:
		return 1
	case f >= 1<<62:
		return never
	}
	return uint64(f)
}

// instant returns the time ns nanoseconds after the Unix epoch.
func instant(ns int64) time.Time { return time.Unix(0, ns) }
