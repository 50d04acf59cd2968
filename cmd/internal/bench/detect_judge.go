package bench

import (
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// judging checks the published changes of a detector against an exact count: their bounds, and
// the times at which keys cool. It runs between two panes, when the count is complete up to the
// previous pane.
type judging struct {
	exact     *exactCounts
	threshold *rules.Threshold
	published []telling
	hot       map[string]time.Time // start of each key's hot time
	below     map[string]time.Time // time since which the exit exceeds a hot key's count and floor
	late      map[string]struct{}

	bounds, wrongBounds, cooled, cooledEarly int
}

// telling is one published change or refresh.
type telling struct {
	published.Hot
	kind   tellingKind
	before int64 // exact count before the batch in which the key became hot
}

type tellingKind uint8

const (
	becameHot tellingKind = iota
	becameCool
	refreshed
)

// slack is the tolerated delay of a key that must cool: hidden counts leave up to a span of cells
// after their window.
const slack = 2 * time.Second

func newJudging(exact *exactCounts, t *rules.Threshold) *judging {
	return &judging{exact: exact, threshold: t, hot: make(map[string]time.Time), below: make(map[string]time.Time), late: make(map[string]struct{})}
}

// bound checks the bounds of a count that is between least and greatest.
func (j *judging) bound(h *published.Hot, least, greatest int64) {
	j.bounds++
	if h.Low > greatest || h.High != published.Unknown && h.High < least {
		j.wrongBounds++
	}
}

// panesOver judges the changes published for ended panes. It runs before the exact count includes
// the next pane, in which a key may have become hot, so it records the key's count until then.
func (j *judging) panesOver(pane int64, now time.Time, floor int64) {
	for i := range j.published {
		t := &j.published[i]
		if t.kind == becameHot && j.hot[t.Text].Equal(t.Since) { // published again, since it explains another key now
			t.kind = refreshed
		}
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

// lateness records a hot key that should have cooled.
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

// paneCounted judges the keys that became hot in a pane, once the count includes the whole pane.
func (j *judging) paneCounted(pane int64) {
	for i := range j.published {
		if t := &j.published[i]; t.kind == becameHot {
			j.bound(&t.Hot, t.before, j.exact.count(t.Text, pane))
		}
	}
	j.published = j.published[:0]
}

func (j *judging) exit() int64 { return j.threshold.ExitCount(j.threshold.Rate.N) }
