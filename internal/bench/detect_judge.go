package bench

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// judging holds what a detector publishes against an exact count: bounds as they are told,
// and when keys cool. It is asked between two panes, when the count is complete up to the
// pane before.
type judging struct {
	exact     *reference
	threshold *rules.Threshold
	told      []telling
	hot       map[string]time.Time // since when
	below     map[string]time.Time // since when a hot key is below the exit by all that can be hidden
	late      map[string]struct{}

	bounds, wrongBounds, cooled, cooledEarly int
}

// telling is one thing that was published.
type telling struct {
	rules.Hot
	kind   tellingKind
	before int64 // what the key had before the batch in which it became hot
}

type tellingKind uint8

const (
	becameHot tellingKind = iota
	becameCool
	refreshed
)

// slack is how much later than it must a key may cool: what is hidden leaves up to a span
// of cells after its window.
const slack = 2 * time.Second

func newJudging(exact *reference, t *rules.Threshold) *judging {
	return &judging{exact: exact, threshold: t, hot: make(map[string]time.Time), below: make(map[string]time.Time), late: make(map[string]struct{})}
}

// bound checks bounds of a count that is at least least and at most most.
func (j *judging) bound(h *rules.Hot, least, most int64) {
	j.bounds++
	if h.Low > most || h.High != rules.Unknown && h.High < least {
		j.wrongBounds++
	}
}

// panesOver judges what was published of panes that are over, before the count goes on to the
// next one, in which a key may have become hot: what it had until then is noted.
func (j *judging) panesOver(pane int64, now time.Time, floor int64) {
	for i := range j.told {
		t := &j.told[i]
		switch t.kind {
		case becameHot:
			t.before = j.exact.count(t.Text, pane)
			j.hot[t.Text] = t.Since
			delete(j.below, t.Text)
		case becameCool:
			truth := j.exact.count(t.Text, t.Until.UnixNano()/j.exact.pane-1)
			j.bound(&t.Hot, truth, truth)
			j.cooled++
			if truth >= j.exit() {
				j.cooledEarly++
			}
			delete(j.hot, t.Text)
			delete(j.below, t.Text)
		case refreshed:
			truth := j.exact.count(t.Text, pane-1)
			j.bound(&t.Hot, truth, truth)
			j.lateness(t, truth, now, floor)
		}
	}
}

// lateness notes a hot key that should be cool.
func (j *judging) lateness(t *telling, truth int64, now time.Time, floor int64) {
	if truth+floor >= j.exit() {
		delete(j.below, t.Text)
		return
	}
	below, known := j.below[t.Text]
	if !known {
		below = now
		j.below[t.Text] = now
	}
	due := below.Add(j.threshold.CoolDown)
	if held := j.hot[t.Text].Add(j.threshold.Hold); held.After(due) {
		due = held
	}
	if now.Sub(due) > slack {
		j.late[t.Text] = struct{}{}
	}
}

// paneCounted judges what became hot in a pane, when the count has all of it.
func (j *judging) paneCounted(pane int64) {
	for i := range j.told {
		if t := &j.told[i]; t.kind == becameHot {
			j.bound(&t.Hot, t.before, j.exact.count(t.Text, pane))
		}
	}
	j.told = j.told[:0]
}

func (j *judging) exit() int64 { return j.threshold.ExitCount(j.threshold.Rate.N) }
