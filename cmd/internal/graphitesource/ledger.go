package graphitesource

import (
	"math"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// pointLedger records the counted value of each series and point, so that a point is counted once,
// however often it is read, and its growth is added. Points are numbered by their time in steps.
// The ledger keeps the newest keep points of each series, which end at the newest point that had
// come of all series when they were last pruned.
type pointLedger struct {
	names   names
	keep    int64
	scale   float64 // factor that turns a value into a count
	polls   int64   // answers read so far
	entries map[string]*seriesState
}

// seriesState is the state of one series.
type seriesState struct {
	seriesName
	hash uint64
	why  whyNot

	taken    []float64 // counted values by point number modulo keep; negative after a decrease, which is counted once
	top      int64     // newest point that taken has room for
	last     int64     // newest point that has a count
	read     int64     // last poll that read it
	sent     int64     // last poll in which it passed the filter
	fraction float64   // fraction carried over: the sum of the values less the sum of the counts, -½ to ½
}

// newCount is the new count of a point.
type newCount struct {
	point int64
	entry *seriesState
	n     int64
}

// answerCounts holds the new counts of an answer.
type answerCounts struct {
	counts                                             []newCount
	points, counted, revised, shrunk, badValue, badKey int64
	foreign, uncanonical                               int64
}

func newLedger(n names, keep int64, scale float64) *pointLedger {
	return &pointLedger{names: n, keep: keep, scale: scale, entries: make(map[string]*seriesState)}
}

// findEntry returns the entry of a series, and creates it if there is none. It returns nil if the
// series has no key.
func (l *pointLedger) findEntry(series string, t *answerCounts) *seriesState {
	e := l.entries[series]
	if e == nil {
		e = new(seriesState)
		if e.seriesName, e.why = l.names.read(series); e.why == isKey {
			e.hash = rules.Hash(e.text)
			e.taken = make([]float64, l.keep)
		}
		switch e.why {
		case foreign:
			t.foreign++
			return nil // not kept, since their number is unbounded
		case badKey:
			t.badKey++
		}
		if e.other != "" {
			t.uncanonical++
		}
		l.entries[series] = e
	}
	e.read = l.polls
	if e.why != isKey {
		return nil
	}
	return e
}

// recordPoints records the points of a series from number from to number to, and adds the new counts to
// the tally.
func (l *pointLedger) recordPoints(e *seriesState, s *series, from, to int64, t *answerCounts) {
	if e.last == 0 {
		e.top = min(from, s.first) - 1
	}
	for i := max(s.first, from); i <= to && i < s.end(); i++ {
		v := s.value[i-s.first] * l.scale
		switch {
		case math.IsNaN(v):
			continue
		case v < 0 || v > wire.MaxCount:
			t.badValue++
			continue
		}
		t.points++
		if i <= e.top-l.keep { // too old
			continue
		}
		e.roll(i, l.keep)
		slot := &e.taken[i%l.keep]
		before := math.Abs(*slot)
		switch {
		case v < before:
			if *slot > 0 {
				*slot = -before
				t.shrunk++
			}
			continue
		case v == before:
			continue
		}
		if before > 0 {
			t.revised++
		}
		*slot, e.last = v, max(e.last, i)
		e.fraction += v - before
		if n := int64(math.Floor(e.fraction + 0.5)); n > 0 {
			e.fraction -= float64(n)
			t.counted = increased(t.counted, n)
			t.counts = append(t.counts, newCount{i, e, n})
		}
	}
}

// roll makes room for points up to top.
func (e *seriesState) roll(top, keep int64) {
	if top-e.top >= keep {
		clear(e.taken)
		e.top = top
	}
	for e.top < top {
		e.top++
		e.taken[e.top%keep] = 0
	}
}

// prune forgets the series that were not read and have no count among the points that are kept.
// newest is the newest of these points.
func (l *pointLedger) prune(newest int64) {
	for name, e := range l.entries {
		if e.read < l.polls && e.last <= newest-l.keep {
			delete(l.entries, name)
		}
	}
}
