package hotkeys

import (
	"maps"
	"slices"
	"time"

	"github.com/hotparam/hotparam"
)

// desired is the set that ought to be in Redis: at most cap keys, in the places that
// [rank] gives out. As many again may be known and wait, so that a key takes a place
// at once when another cools. The others wait with the detector, which tells them with
// each refresh. Not safe for concurrent use.
type desired struct {
	cap      int
	shares   map[string]*guarantee // by rule
	known    map[string]*wanted    // by member
	cooled   map[string]struct{}   // what was known and is no more, for a take-over
	reported map[int]reportedPart  // by part of the aggregator, as of its last refresh
	overflow map[string]uint64     // rule → times that a key found no place, or lost its own

	stale     bool    // the places have to be given out anew
	unseen    bool    // a key has got a place or lost it since top was taken
	lastPlace *ranked // the last key with a place; nil: some are free
	lastKnown *ranked // the last key that is kept when there are too many; nil: there is room
}

// reportedPart is how many keys of one part of the aggregator are hot.
type reportedPart struct {
	hot           map[string]int // by rule, those that can be published
	unpublishable int            // that no watcher could read
}

// newDesired divides cap places equally between the rules.
func newDesired(places int, rules []string) desired {
	return desired{
		cap: places, shares: newGuarantees(places, rules), known: make(map[string]*wanted),
		cooled: make(map[string]struct{}), reported: make(map[int]reportedPart), overflow: make(map[string]uint64),
	}
}

// entryTerms are the parts of an entry that make a change if they differ; rates do not.
type entryTerms struct {
	since int64 // unix milliseconds
	limit hotparam.Rate
	burst int64
	mode  hotparam.Mode

	usual, spared bool
}

func entryTermsOf(h hotparam.Hot) entryTerms {
	return entryTerms{since: h.Since.UnixMilli(), limit: h.Limit, burst: h.Burst, mode: h.Mode, usual: h.Usual, spared: h.Spared}
}

// set takes a key that became hot, or changed. It reports whether what is published may
// have changed.
func (d *desired) set(h hotparam.Hot) (changed bool) {
	member := h.Key.String()
	delete(d.cooled, member)
	if w := d.known[member]; w != nil {
		w.Hot = h
		d.stale = d.stale || w.placed || d.mayPlace(w)
		return d.changed()
	}
	w := &wanted{Hot: h, member: member}
	if !d.wants(w) {
		d.overflow[h.Rule]++
		return d.changed()
	}
	d.add(w)
	if !d.stale {
		w.waits = true
		d.overflow[h.Rule]++
	}
	return d.changed()
}

// changed reports whether what is published may differ from what was taken last.
func (d *desired) changed() bool { return d.stale || d.unseen }

// wants reports whether a key that is not known is worth a place among those that
// wait.
func (d *desired) wants(w *wanted) bool {
	return d.lastKnown == nil || len(d.known) < d.kept() || w.isAhead(d.lastKnown, d.shares)
}

// add makes a key known. If it may take a place, places have to be given out anew.
func (d *desired) add(w *wanted) {
	if len(d.known) >= 2*d.cap {
		d.trim()
	}
	d.known[w.member] = w
	d.stale = d.stale || d.mayPlace(w)
}

// mayPlace reports whether a key without a place may get one, as places were given out
// last.
func (d *desired) mayPlace(w *wanted) bool {
	return d.lastPlace == nil || w.isAhead(d.lastPlace, d.shares)
}

// kept is how many keys stay when there are too many: half as many may wait as can,
// so that a flood of hot keys is sorted only once in cap/2 keys.
func (d *desired) kept() int { return d.cap + d.cap/2 }

func (d *desired) trim() {
	for _, r := range d.give()[d.kept():] {
		delete(d.known, r.member)
	}
}

// remove takes a key that has cooled. It reports as set does.
func (d *desired) remove(key hotparam.Key) (changed bool) {
	member := key.String()
	if w := d.known[member]; w != nil && w.placed {
		d.stale = true
	}
	delete(d.known, member)
	if len(d.cooled) >= 2*d.cap {
		clear(d.cooled) // they are left to fade
	}
	d.cooled[member] = struct{}{}
	return d.changed()
}

// adopt takes a key that is published: it has a place.
func (d *desired) adopt(h hotparam.Hot) {
	member := h.Key.String()
	d.known[member] = &wanted{Hot: h, member: member, placed: true}
	d.stale = true
}

// vacate takes all places back, before a take-over tells which keys have one.
func (d *desired) vacate() {
	for _, w := range d.known {
		w.placed = false
	}
	d.stale = true
}

// agree reports whether a published key is known here, too: then it has been hot since
// it was published, and has its place.
func (d *desired) agree(member string, since time.Time) bool {
	w := d.known[member]
	if w != nil {
		w.Since, w.placed = since, true
	}
	return w != nil
}

// refresh takes the current counts of all keys of a part that are hot. entry makes of one
// that is not known what is published. It reports as set does.
func (d *desired) refresh(part int, hot []hotparam.Hot, entry func(hotparam.Hot) hotparam.Hot) (changed bool) {
	report := reportedPart{hot: make(map[string]int)}
	var strangers []int
	for i := range hot {
		h := &hot[i]
		if !countsMakeSense(*h) {
			report.unpublishable++
			continue
		}
		report.hot[h.Rule]++
		if !d.update(h) {
			strangers = append(strangers, i)
		}
	}
	d.give() // strangers compete with the counts of now
	for _, i := range strangers {
		w := wanted{Hot: entry(hot[i]), member: hot[i].Key.String(), waits: true}
		switch {
		case !d.wants(&w):
		case publishable(w.Hot) != nil:
			report.hot[w.Rule]--
			report.unpublishable++
		default:
			kept := w // so that those of a flood which are not kept stay on the stack
			d.add(&kept)
		}
	}
	d.reported[part] = report
	if len(strangers) > 0 {
		d.give()
	}
	return d.changed()
}

// update takes the current counts of a key, and where they come from unless that is
// not known now. It reports whether the key is known.
func (d *desired) update(h *hotparam.Hot) bool {
	w := d.known[h.Key.String()]
	if w == nil {
		return false
	}
	w.Low, w.High, w.Estimated, w.Rate, w.Ratio, w.Cause = h.Low, h.High, h.Estimated, h.Rate, h.Ratio, h.Cause
	if h.Top != nil {
		w.Top = h.Top
	}
	return true
}

// give gives out the places. It returns all keys in the order of their claims.
func (d *desired) give() []ranked {
	keys := slices.Collect(maps.Values(d.known))
	all, moved := rank(keys, d.shares), false
	for i, w := range all {
		placed := i < d.cap
		moved = moved || placed != w.placed
		if !placed && !w.waits {
			d.overflow[w.Rule]++
		}
		w.placed, w.waits = placed, !placed
	}
	if moved { // those with a place are stronger now, which changes only their order
		d.unseen, all = true, rank(keys, d.shares)
	}
	d.stale, d.lastPlace, d.lastKnown = false, nil, nil
	if len(all) >= d.cap {
		d.lastPlace = &all[d.cap-1]
	}
	if len(all) >= d.kept() {
		d.lastKnown = &all[d.kept()-1]
	}
	return all
}

// top is a copy of the set that ought to be published.
func (d *desired) top() map[string]hotparam.Hot {
	if d.stale {
		d.give()
	}
	d.unseen = false
	top := make(map[string]hotparam.Hot, min(d.cap, len(d.known)))
	for member, w := range d.known {
		if w.placed {
			top[member] = w.Hot
		}
	}
	return top
}

// RulePlaces are the places of a rule's keys in the published set.
type RulePlaces struct {
	Placed   int    // hot keys that have a place
	Waiting  int    // hot keys that have none, as the set is full
	Overflow uint64 // times that a hot key found no place, or lost its own
}

// places returns the places by rule. Keys that wait and are not known are counted as
// of the last refresh.
func (d *desired) places() map[string]RulePlaces {
	if d.stale {
		d.give()
	}
	all := make(map[string]RulePlaces, len(d.shares))
	for rule := range d.shares {
		all[rule] = RulePlaces{}
	}
	for _, w := range d.known {
		p := all[w.Rule]
		if w.placed {
			p.Placed++
		} else {
			p.Waiting++
		}
		all[w.Rule] = p
	}
	hot := make(map[string]int)
	for _, part := range d.reported {
		for rule, n := range part.hot {
			hot[rule] += n
		}
	}
	for rule, n := range hot {
		p := all[rule]
		p.Waiting = max(p.Waiting, n-p.Placed)
		all[rule] = p
	}
	for rule, n := range d.overflow {
		p := all[rule]
		p.Overflow = n
		all[rule] = p
	}
	return all
}
