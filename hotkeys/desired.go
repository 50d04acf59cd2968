package hotkeys

import (
	"maps"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// desired is the set that should be in Redis: at most cap keys, which get the places in the order
// of [rank]. As many keys again are known and wait, so that one of them takes a place at once
// when another key cools. Further hot keys are forgotten; the detector reports them again with
// each refresh. It is not safe for concurrent use.
type desired struct {
	cap      int
	shares   map[string]*guarantee // guaranteed places by rule
	known    map[string]*wanted    // known keys by member
	cooled   map[string]struct{}   // members that were known and have cooled, for a takeover
	reported map[int]reportedPart  // counts by part of the aggregator, as of its last refresh
	overflow map[string]uint64     // times that a key found no place, or lost its place, by rule

	stale     bool    // places have to be assigned again
	unseen    bool    // a key has got a place, or lost it, since the last top
	lastPlace *ranked // the last key with a place; nil if there are free places
	lastKnown *ranked // the last key that trim would keep; nil if it would drop none
}

// reportedPart counts the hot keys of one part of the aggregator.
type reportedPart struct {
	hot           map[string]int // keys that can be published, by rule
	unpublishable int            // keys that watchers could not read
}

// newDesired returns an empty set of this many places, divided equally between the rules.
func newDesired(places int, rules []string) desired {
	return desired{
		cap: places, shares: newGuarantees(places, rules), known: make(map[string]*wanted),
		cooled: make(map[string]struct{}), reported: make(map[int]reportedPart), overflow: make(map[string]uint64),
	}
}

// entryTerms are the parts of an entry whose change is published at once. Others, such
// as the rate, are published with the next renewal.
type entryTerms struct {
	since int64 // unix milliseconds
	limit rules.Rate
	burst int64
	mode  rules.Mode
	scope rules.Scope

	usual, spared bool
	hold          holdTerms
}

// holdTerms are those of a hold. The zero value is none.
type holdTerms struct {
	pool    string
	permits int64
	stage   published.HoldStage
}

func entryTermsOf(h published.Hot) entryTerms {
	terms := entryTerms{since: h.Since.UnixMilli(), limit: h.Limit, burst: h.Burst, mode: h.Mode, scope: h.Scope, usual: h.Usual, spared: h.Spared}
	if h.Hold != nil {
		terms.hold = holdTerms{h.Hold.Pool, h.Hold.Permits, h.Hold.Stage}
	}
	return terms
}

// set adds or updates a hot key and reports whether the set to publish may have changed.
func (d *desired) set(h published.Hot) (changed bool) {
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

// changed reports whether the set to publish may differ from the last top.
func (d *desired) changed() bool { return d.stale || d.unseen }

// wants reports whether an unknown key should become known.
func (d *desired) wants(w *wanted) bool {
	return d.lastKnown == nil || len(d.known) < d.keptByTrim() || w.isAhead(d.lastKnown, d.shares)
}

// add makes a key known.
func (d *desired) add(w *wanted) {
	if len(d.known) >= 2*d.cap {
		d.trim()
	}
	d.known[w.member] = w
	d.stale = d.stale || d.mayPlace(w)
}

// mayPlace reports whether a key without a place may get one, as of the last assignment.
func (d *desired) mayPlace(w *wanted) bool {
	return d.lastPlace == nil || w.isAhead(d.lastPlace, d.shares)
}

// keptByTrim returns the number of keys that trim keeps. It is cap/2 below the maximum, so that a
// flood of hot keys is sorted only once in cap/2 keys.
func (d *desired) keptByTrim() int { return d.cap + d.cap/2 }

// trim forgets the keys that come last.
func (d *desired) trim() {
	for _, r := range d.assign()[d.keptByTrim():] {
		delete(d.known, r.member)
	}
}

// remove removes a key that has cooled and reports whether the set to publish may have
// changed.
func (d *desired) remove(key rules.Key) (changed bool) {
	member := key.String()
	if w := d.known[member]; w != nil && w.placed {
		d.stale = true
	}
	delete(d.known, member)
	if len(d.cooled) >= 2*d.cap {
		clear(d.cooled) // after a takeover these are left to expire
	}
	d.cooled[member] = struct{}{}
	return d.changed()
}

// adopt adds a key that is already published, with a place.
func (d *desired) adopt(h published.Hot) {
	member := h.Key.String()
	delete(d.cooled, member)
	d.known[member] = &wanted{Hot: h, member: member, placed: true}
	d.stale = true
}

// vacate clears all places. After a takeover only the keys found in Redis have one.
func (d *desired) vacate() {
	for _, w := range d.known {
		w.placed = false
	}
	d.stale = true
}

// confirm reports whether a published key is known here too. If it is, confirm gives it a place
// and the time since which it is published as hot.
func (d *desired) confirm(member string, since time.Time) bool {
	w := d.known[member]
	if w != nil {
		w.Since, w.placed = since, true
	}
	return w != nil
}

// refresh updates the counts of all hot keys of a part. It also adds unknown keys that come
// before others, in the form that entry returns. It reports whether the set to publish may have
// changed.
func (d *desired) refresh(part int, hot []published.Hot, entry func(published.Hot) published.Hot) (changed bool) {
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
	d.assign() // with the current counts, before unknown keys compete
	for _, i := range strangers {
		w := wanted{Hot: entry(hot[i]), member: hot[i].Key.String(), waits: true}
		switch {
		case !d.wants(&w):
		case publishable(w.Hot) != nil:
			report.hot[w.Rule]--
			report.unpublishable++
		default:
			kept := w // only a kept key moves to the heap, since there may be a flood
			d.add(&kept)
		}
	}
	d.reported[part] = report
	if len(strangers) > 0 {
		d.assign()
	}
	return d.changed()
}

// update sets the counts of a key, and its origins unless they are unknown now, and
// reports whether the key is known.
func (d *desired) update(h *published.Hot) bool {
	w := d.known[h.Key.String()]
	if w == nil {
		return false
	}
	w.Low, w.High, w.Estimated, w.Rate, w.Ratio, w.Cause, w.Also, w.Hold = h.Low, h.High, h.Estimated, h.Rate, h.Ratio, h.Cause, h.Also, h.Hold
	if h.Top != nil {
		w.Top = h.Top
	}
	return true
}

// assign assigns the places and returns all known keys in the order of rank.
func (d *desired) assign() []ranked {
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
	if moved { // a place adds to a key's strength, which can change the order but no place
		d.unseen, all = true, rank(keys, d.shares)
	}
	d.stale, d.lastPlace, d.lastKnown = false, nil, nil
	if len(all) >= d.cap {
		d.lastPlace = &all[d.cap-1]
	}
	if len(all) >= d.keptByTrim() {
		d.lastKnown = &all[d.keptByTrim()-1]
	}
	return all
}

// top returns a copy of the set to publish, by member.
func (d *desired) top() map[string]published.Hot {
	if d.stale {
		d.assign()
	}
	d.unseen = false
	top := make(map[string]published.Hot, min(d.cap, len(d.known)))
	for member, w := range d.known {
		if w.placed {
			top[member] = w.Hot
		}
	}
	return top
}

// RulePlaces counts the hot keys of one rule by whether they are published.
type RulePlaces struct {
	Placed   int    // hot keys with a place in the set
	Waiting  int    // hot keys without a place, because the set is full
	Overflow uint64 // times that a hot key found no place, or lost its place
}

// places returns the places by rule. Waiting keys that are not known are counted as of the last
// refresh.
func (d *desired) places() map[string]RulePlaces {
	if d.stale {
		d.assign()
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
