package e2e

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/internal/published"
)

// lossRun judges one run: what was published, and how narrow its bounds were.
type lossRun struct {
	*restartJudge
	seen *restartSeen
}

// lossEntry is an entry as read from Redis.
type lossEntry struct {
	key     int
	hot     published.Hot
	written int64
}

// lossLag is how long the aggregator waits for counts. lossAge is the maximum age of an entry's
// counts when it is written. They are from the last refresh, which comes each second, as renewals
// do. Their window ends up to five panes before the newest, if that one has clear bounds.
const lossLag, lossAge = int64(250e6), int64(1800e6)

// lossMatch is a kind of window that bounds can belong to.
type lossMatch int

const (
	noWindow lossMatch = iota
	openWindow
	closedWindow
)

// explain returns a window for which an entry's bounds are right, or says why there is none.
func (x *lossTruth) explain(w exact.PaneWindow, e *lossEntry) (found lossMatch, wrong string) {
	key, h := &x.keys[e.key], e.hot
	newest := e.written / w.Width
	mostLow, leastHigh, open := int64(0), int64(math.MaxInt64), false
	for last := (e.written-lossAge-lossLag)/w.Width - 1; last <= newest; last++ {
		from, over := w.Span(last)
		least, most := key.in(from, over)
		mostLow = max(mostLow, most)
		if h.Low > most {
			continue
		}
		if over+lossLag <= e.written {
			least -= x.secret(e.key, from, over, over+lossLag)
			leastHigh = min(leastHigh, least)
			if h.High == published.Unknown || h.High >= least {
				return closedWindow, ""
			}
		}
		// The counts within the lag of an unfinished window are not known yet.
		if over > e.written-lossAge && !open {
			known := max(from, min(over-3*lossWidth, max(over-w.Width, e.written-lossAge)-2*lossWidth)-lossWidth)
			least, _ := key.in(from, known)
			open = h.High == published.Unknown || h.High >= least-x.secret(e.key, from, known, known+3*lossWidth)
		}
	}
	switch {
	case h.Low > mostLow:
		return noWindow, fmt.Sprintf("low %d, and no window until then has more than %d", h.Low, mostLow)
	case open:
		return openWindow, ""
	}
	return noWindow, fmt.Sprintf("low %d and high %d, and the windows that have so many have at least %d", h.Low, h.High, leastHigh)
}

// isSettled reports whether an entry is of a key with a rate that had been hot for a window, on a
// machine that was not stalled.
func (r *lossRun) isSettled(e *lossEntry) bool {
	return r.plan.keys[e.key].rule == "rate" && e.hot.Since.UnixNano()+int64(time.Second)+lossLag+lossAge < e.written &&
		!r.stalled(e.written-2*int64(time.Second)-lossAge, e.written)
}

// isActive reports whether the requests for a key go on when an entry is written.
func (r *lossRun) isActive(e *lossEntry) bool {
	return e.written < r.begin+r.plan.keys[e.key].to*lossWidth
}

// isVague reports whether the bounds are unknown or far apart.
func (e *lossEntry) isVague() bool {
	return e.hot.High == published.Unknown || e.hot.High-e.hot.Low > lossThreshold/10
}

// judgeReads compares the bounds of hot keys, as read from Redis at any time, with the truth. At
// most the given part of the reads may find them far apart.
func (r *lossRun) judgeReads(t *testing.T, most float64) {
	t.Helper()
	r.judgeNamespace(r.seen)
	r.reportWrong(t)
	reads, wide := 0, 0
	for i := range r.seen.reads {
		if e := &r.seen.reads[i]; r.isActive(e) && r.isSettled(e) {
			if reads++; e.isVague() {
				wide++
			}
		}
	}
	lost, all := r.countLost()
	t.Logf("%d of %d packets lost; %d of %d reads are wide", lost, all, wide, reads)
	if reads > 0 && float64(wide) > most*float64(reads) {
		t.Errorf("in %d of %d reads bounds are not known, or are more than %d apart", wide, reads, lossThreshold/10)
	}
}

func (r *lossRun) reportWrong(t *testing.T) {
	t.Helper()
	for _, wrong := range r.wrong {
		for i, text := range wrong {
			if i == 10 {
				t.Errorf("and %d more", len(wrong)-i)
				break
			}
			t.Error(text)
		}
	}
}

// lastEnds returns the keys that were hot, each with the last time at which it cooled, or 0 if it
// is hot to the end.
func (r *lossRun) lastEnds() map[int]int64 {
	ends := make(map[int]int64)
	for _, s := range r.seen.stays {
		ends[s.key] = s.left
	}
	return ends
}

// judgeRun checks everything that was published.
func (r *lossRun) judgeRun(t *testing.T) {
	t.Helper()
	r.judgeNamespace(r.seen)
	ends := r.lastEnds()
	for key := range r.plan.keys {
		k := &r.plan.keys[key]
		left, was := ends[key]
		if was && left == 0 {
			r.report(r.seen, wrongCool, key, "to the end")
		}
		if must := k.value == "star" || k.rule == "jump"; k.rule != "rate" && was != must {
			r.report(r.seen, wrongMiss, key, "or should not have been: hot %v", was)
		}
	}
	r.reportWrong(t)
	windows, strange := 0, 0 // of settled keys
	var vague []string
	for i := range r.seen.entries {
		e := &r.seen.entries[i]
		if !r.isSettled(e) {
			continue
		}
		if windows++; e.isVague() {
			vague = append(vague, fmt.Sprintf("%s at %s: %d to %d", r.plan.keys[e.key].value, r.since(e.written), e.hot.Low, e.hot.High))
		}
		if found, _ := r.explain(lossSecond, e); found == openWindow && r.isActive(e) {
			strange++
		}
	}
	lost, all := r.countLost()
	if late := r.maxLateness(); late > 0 {
		t.Logf("the machine was held up by up to %v", time.Duration(late))
	}
	t.Logf("%d of %d packets lost; %d keys were hot; %d bounds of windows that were over, and %d of others; %d of %d windows vague %q",
		lost, all, len(ends), r.closed, r.far, len(vague), windows, vague)
	if r.closed < len(ends) || r.closed < r.far {
		t.Errorf("%d bounds can be of a window that was over, and %d cannot: nothing is shown", r.closed, r.far)
	}
	if strange > 1+windows/20 {
		t.Errorf("%d of %d bounds of steady keys can be of no window that was over", strange, windows)
	}
	most := 4 // for so few windows that one in a hundred means nothing
	if windows > 150 {
		most = (windows + 99) / 100
	}
	if len(vague) > most {
		t.Errorf("of %d windows the bounds of %d are not known, or are more than %d apart", windows, len(vague), lossThreshold/10)
	}
}

// compare compares the times at which keys cooled with those of a run without loss.
func (r *lossRun) compare(t *testing.T, lossless *lossRun) {
	t.Helper()
	ends, latest := r.lastEnds(), int64(0)
	for key, want := range lossless.lastEnds() {
		got := ends[key]
		if got == 0 || want == 0 {
			continue // judgeRun says whether it had to be hot, and that it never cooled
		}
		late := (got - r.begin) - (want - lossless.begin)
		latest = max(latest, late)
		if late > int64(time.Second)+restartPace+r.maxLateness() {
			t.Errorf("%s cools at %s, and without loss at %s", r.plan.keys[key].member(), r.since(got), lossless.since(want))
		}
	}
	t.Logf("keys cool up to %v later than without loss", time.Duration(latest))
}
