package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/internal/published"
)

// restartKnows is how long it takes a restarted aggregator to know the counts of the keys in its
// snapshot. It must receive a packet of each live sender, which sends at least every second.
const restartKnows = int64(time.Second) + lossLag

// restartJudge compares the published keys with the truth.
type restartJudge struct {
	*restartTruth
	t           *testing.T
	begin, end  int64
	control     *restartSeen
	closed, far int // bounds of windows that were over, or can only be of others
	unknown     int // bounds without a high count

	wrong  map[string][]string
	cooled []restartCooling
	// coolings counts, by kind of threshold, the keys that were hot over a restart and then
	// cooled. Some cooled by the snapshot of their window, the others had to wait for a complete
	// window. A key whose account is not restated soon, because its packets were lost, may own
	// any of the missing counts of its senders.
	coolings map[string]*restartCoolings
}

// The kinds by which coolings are counted. Keys that thresholds of several kinds held have the
// last one.
const (
	coolsByRate   = "rate"
	coolsCompared = "share, jump or top"
	coolsBySome   = "several"
)

// newRestartJudge returns a judge of what was published from begin to end. Where the reads were held
// up, aggregators may have been, too.
func newRestartJudge(t *testing.T, truth *restartTruth, begin, end int64, reads []int64, control *restartSeen) *restartJudge {
	for i := 1; i < len(reads); i++ {
		if reads[i]-reads[i-1] > restartPace+lossStall {
			truth.stalls = append(truth.stalls, lossSpan{reads[i-1], reads[i]})
		}
	}
	return &restartJudge{restartTruth: truth, t: t, begin: begin, end: end, control: control, wrong: make(map[string][]string), coolings: make(map[string]*restartCoolings)}
}

// restartCoolings counts the keys that cooled by the snapshot, and by a complete window.
type restartCoolings struct{ bySnapshot, byWhole int }

// restartCooling is the delay of a key's cooling, compared to a run without a restart.
type restartCooling struct {
	window time.Duration
	late   time.Duration
	reason string
}

func (j *restartJudge) since(instant int64) string {
	return fmt.Sprintf("%.3fs", time.Duration(instant-j.begin).Seconds())
}

func (j *restartJudge) report(x *restartSeen, kind string, key int, format string, args ...any) {
	text := fmt.Sprintf("%s: %s: %s %s", x.name, kind, j.plan.keys[key].member(), fmt.Sprintf(format, args...))
	j.wrong[kind] = append(j.wrong[kind], text)
}

// The kinds of faults that judges find, and a run in which they find none.
const (
	wrongLeave = "left although it is above its exit"
	wrongEnter = "became hot below its threshold"
	wrongBound = "has bounds that are wrong"
	wrongMiss  = "was not found"
	wrongCool  = "cooled late"

	showsNothing = "shows nothing"
)

// judgeNamespace checks one namespace.
func (j *restartJudge) judgeNamespace(x *restartSeen) {
	for i := range x.entries {
		j.judgeBounds(x, &x.entries[i])
	}
	for _, s := range x.stays {
		j.judgeEntry(x, s)
		if s.left > 0 {
			j.judgeLeave(x, s)
		}
		if x != j.control {
			j.judgeCooling(x, s)
		}
	}
	j.judgeFinds(x)
}

func (j *restartJudge) judgeBounds(x *restartSeen, e *lossEntry) {
	if e.hot.Cause.IsZero() {
		j.report(x, wrongBound, e.key, "at %s: no cause", j.since(e.written))
		return
	}
	if e.hot.High == published.Unknown {
		j.unknown++
	}
	switch found, wrong := j.explain(exact.NewWindow(e.hot.Cause.Rate.Per), e); {
	case found == closedWindow:
		j.closed++
	case found == openWindow:
		j.far++
	case !j.stalled(e.written-2*lossAge-int64(e.hot.Cause.Rate.Per), e.written):
		j.report(x, wrongBound, e.key, "at %s over %v: %s", j.since(e.written), e.hot.Cause.Rate.Per, wrong)
	}
}

// judgeEntry checks that some threshold can have made a key hot.
func (j *restartJudge) judgeEntry(x *restartSeen, s *restartStay) {
	if j.isAllowed(s.key) {
		j.report(x, wrongEnter, s.key, "at %s: it is allowed", j.since(s.from))
		return
	}
	why := ""
	for i := range j.rule(s.key).terms {
		t := &j.rule(s.key).terms[i]
		w := exact.NewWindow(t.window)
		from := min(s.last.Since.UnixNano(), s.from-int64(3*time.Second))
		for last := from/w.Width - 1; last <= s.from/w.Width; last++ {
			_, most := j.keys[s.key].in(w.Span(last))
			need := j.enters(s.key, t, last)
			if most >= need {
				return
			}
			why = fmt.Sprintf("%s: %d of %d", t.name(), most, need)
		}
	}
	j.report(x, wrongEnter, s.key, "at %s: %s", j.since(s.from), why)
}

// judgeLeave checks that no threshold that held a key can hold it still.
func (j *restartJudge) judgeLeave(x *restartSeen, s *restartStay) {
	if j.stalled(s.left-int64(3*time.Second), s.left) {
		return
	}
	for i := range j.rule(s.key).terms {
		t := &j.rule(s.key).terms[i]
		claimed, ok := s.claims[t.name()]
		if !ok {
			continue
		}
		w, below := exact.NewWindow(t.window), false
		// An entry's thresholds may be as old as its counts.
		for last := (claimed-lossAge)/w.Width - 2; last < s.left/w.Width && !below; last++ {
			from, to := w.Span(last)
			least, _ := j.keys[s.key].in(from, to)
			below = least-j.secret(s.key, from, to, to+lossLag) < j.leaves(s.key, t, last)
		}
		if !below {
			j.report(x, wrongLeave, s.key, "at %s, held by %s", j.since(s.left), t.name())
		}
	}
}

// judgeCooling compares the time at which a key cooled with that in a run without a restart.
func (j *restartJudge) judgeCooling(x *restartSeen, s *restartStay) {
	var without int64
	for _, c := range j.control.stays {
		if c.overlaps(s) {
			if without = max(without, c.left); c.left == 0 {
				return
			}
		}
	}
	left := s.endWithin(j.end)
	late := left - without
	window, kind := time.Duration(0), ""
	for i := range j.rule(s.key).terms {
		t := &j.rule(s.key).terms[i]
		for _, name := range s.holders {
			if name == t.name() {
				of := coolsCompared
				if t.kind == "rate" {
					of = coolsByRate
				}
				if window = max(window, t.window); kind != "" && kind != of {
					of = coolsBySome
				}
				kind = of
			}
		}
	}
	due, _ := x.isDown(without)
	if without == 0 || s.left == 0 && left < due+int64(time.Second)+exact.NewWindow(window).Width {
		return
	}
	life, width := x.lifeAt(left), exact.NewWindow(window).Width
	whole := life.heard + int64(window) + width
	spared := whole > without-int64(window) && life.down > 0
	if spared || s.left == 0 {
		by := fmt.Sprintf("%s: %s", x.name, j.plan.keys[s.key].member())
		if s.left == 0 {
			by += ", or later"
		}
		j.cooled = append(j.cooled, restartCooling{window, time.Duration(left - due), by})
	}
	strict := due + int64(time.Second) + restartPace + width // a window ends with a pane
	if coolDown := max(width, int64(restartCoolDown)); spared {
		soon := strict
		strict = max(strict, max(whole, life.heard+restartKnows)+lossLag+coolDown+int64(time.Second)+restartPace)
		// The time of the counts in the outage is unknown, so they begin a cool-down.
		if _, n := j.keys[s.key].in(life.down-int64(time.Second), life.heard); n == 0 {
			coolDown = 0
		}
		of := j.coolings[kind]
		if of == nil {
			of = new(restartCoolings)
			j.coolings[kind] = of
		}
		if left <= max(soon, life.heard+restartKnows+coolDown+int64(time.Second)+restartPace)+j.maxLateness() {
			of.bySnapshot++
		} else {
			of.byWhole++
		}
	}
	if left > strict+j.maxLateness() {
		j.report(x, wrongCool, s.key, "at %s, without a restart at %s: %v later", j.since(left), j.since(without), time.Duration(late))
	}
}

// judgeFinds checks that a key surely above a rate, in a window that an aggregator received
// completely, is hot a second later.
func (j *restartJudge) judgeFinds(x *restartSeen) {
	stays := make(map[int][]*restartStay)
	for _, s := range x.stays {
		stays[s.key] = append(stays[s.key], s)
	}
	for key := range j.plan.keys {
		if j.isAllowed(key) {
			continue
		}
		for i := range j.rule(key).terms {
			if t := &j.rule(key).terms[i]; t.kind == "rate" {
				j.judgeFind(x, key, t, stays[key])
			}
		}
	}
}

func (j *restartJudge) judgeFind(x *restartSeen, key int, t *restartTerm, stays []*restartStay) {
	w := exact.NewWindow(t.window)
	for last := j.begin / w.Width; ; last++ {
		from, to := w.Span(last)
		due := to + int64(time.Second) + j.maxLateness()
		if due > j.end {
			return
		}
		_, n := j.counts(key, t, to)
		least, _ := j.keys[key].in(from, to)
		if 10*least < 11*n || !x.hears(from, due) {
			continue
		}
		found := false
		for _, s := range stays {
			found = found || s.from <= due && (s.left == 0 || s.left >= to)
		}
		if !found {
			j.report(x, wrongMiss, key, "by %s until %s, with %d of %d", t.name(), j.since(due), least, n)
			return
		}
	}
}

// hears reports whether one aggregator listened from one instant on and published until another.
func (x *restartSeen) hears(from, to int64) bool {
	for _, l := range x.lives {
		if from < max(l.up, l.heard)+int64(300*time.Millisecond) && to > l.down {
			return false
		}
	}
	return true
}
