package e2e

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/rules"
)

// lossRun holds all that was published in one run, and the true counts.
type lossRun struct {
	plan    *lossPlan
	truth   *lossTruth
	begin   int64 // start of the plan
	end     int64
	entries []lossEntry
	reads   []lossEntry // each 50 ms; written is when
	events  []lossChange

	windows     int      // windows of rate keys that had been hot for a window
	vague       []string // those whose bounds are unknown or far apart
	closed, far int      // bounds of windows that were over, or can only be of others
	strange     int      // the latter, for keys whose windows are all alike
	wrong       []string
}

// lossEntry is an entry as read from Redis.
type lossEntry struct {
	key     int
	hot     rules.Hot
	written int64
}

// lossChange is a change of the published set.
type lossChange struct {
	key     int
	instant int64
	hot     *rules.Hot // nil: it cooled
}

func (r *lossRun) report(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// since formats an instant of the run.
func (r *lossRun) since(instant int64) string {
	return fmt.Sprintf("%.3fs", time.Duration(instant-r.begin).Seconds())
}

// lossLag is how long the aggregator waits for counts. lossAge is the maximum age of an entry's
// counts when it is written. They are from the last refresh, which comes each second, as renewals
// do. Their window ends up to five panes before the newest, if that one has clear bounds.
const lossLag, lossAge = int64(250e6), int64(1800e6)

// judgeBounds compares the bounds of an entry with the truth. Redis does not say which window
// they belong to. It is the newest window that had ended, plus the lag, when they were computed,
// or an unfinished window with a higher low. So they must be right for at least one window that
// they can belong to.
func (r *lossRun) judgeBounds(e lossEntry) {
	h := e.hot
	settled := r.plan.keys[e.key].rule == "rate" && h.Since.UnixNano()+int64(time.Second)+lossLag+lossAge < e.written
	if settled && !r.truth.stalled(e.written-2*int64(time.Second)-lossAge, e.written) {
		r.windows++
		if h.High == rules.Unknown || h.High-h.Low > lossThreshold/10 {
			r.vague = append(r.vague, fmt.Sprintf("%s at %s: %d to %d", r.plan.keys[e.key].value, r.since(e.written), h.Low, h.High))
		}
	}
	switch found, wrong := r.truth.explain(lossSecond, &e); found {
	case closedWindow:
		r.closed++
	case openWindow:
		r.far++
		if settled && !r.truth.stalled(e.written-2*int64(time.Second)-lossAge, e.written) && r.plan.keys[e.key].to*lossWidth+r.begin > e.written {
			r.strange++
		}
	default:
		r.report("%s at %s: %s", r.plan.keys[e.key].member(), r.since(e.written), wrong)
	}
}

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
			if h.High == rules.Unknown || h.High >= least {
				return closedWindow, ""
			}
		}
		// The counts within the lag of an unfinished window are not known yet.
		if over > e.written-lossAge && !open {
			known := max(from, min(over-3*lossWidth, max(over-w.Width, e.written-lossAge)-2*lossWidth)-lossWidth)
			least, _ := key.in(from, known)
			open = h.High == rules.Unknown || h.High >= least-x.secret(e.key, from, known, known+3*lossWidth)
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

// judgeReads compares the bounds of hot keys, as read from Redis at any time, with the truth. At
// most the given part of the reads may find them far apart.
func (r *lossRun) judgeReads(t *testing.T, most float64) {
	t.Helper()
	for _, e := range r.entries {
		r.judgeBounds(e)
	}
	for _, wrong := range r.wrong {
		t.Error(wrong)
	}
	reads, wide := 0, 0
	for _, e := range r.reads {
		k := &r.plan.keys[e.key]
		settled := k.rule == "rate" && e.hot.Since.UnixNano()+int64(time.Second)+lossLag+lossAge < e.written && e.written < r.begin+k.to*lossWidth
		if !settled || r.truth.stalled(e.written-2*int64(time.Second)-lossAge, e.written) {
			continue
		}
		if reads++; e.hot.High == rules.Unknown || e.hot.High-e.hot.Low > lossThreshold/10 {
			wide++
		}
	}
	lost, all := r.truth.countLost()
	t.Logf("%d of %d packets lost; %d of %d reads are wide", lost, all, wide, reads)
	if reads > 0 && float64(wide) > most*float64(reads) {
		t.Errorf("in %d of %d reads bounds are not known, or are more than %d apart", wide, reads, lossThreshold/10)
	}
}

// judgeEntry checks that a hot key's low count was reached when it became hot, and with it the
// threshold.
func (r *lossRun) judgeEntry(e lossChange) {
	k, most := &r.plan.keys[e.key], int64(0)
	from := e.hot.Since.UnixNano()/lossWidth - 1
	for last := from; last <= e.instant/lossWidth; last++ {
		_, n := r.truth.keys[e.key].window(last)
		most = max(most, n)
	}
	if e.hot.Low > most {
		r.report("%s hot at %s with low %d, and no window has more than %d", k.member(), r.since(e.instant), e.hot.Low, most)
	}
	if k.rule == "rate" && most < lossThreshold {
		r.report("%s hot at %s, and no window has more than %d", k.member(), r.since(e.instant), most)
	}
}

// hotKeys returns the keys that were hot, each with the time of its first beginning and of its
// last end.
func (r *lossRun) hotKeys() map[int][2]int64 {
	hot := make(map[int][2]int64)
	for _, e := range r.events {
		times, known := hot[e.key]
		switch {
		case e.hot == nil:
			times[1] = e.instant
		case !known:
			times = [2]int64{e.instant, math.MaxInt64}
		case times[1] != math.MaxInt64:
			times[1] = math.MaxInt64
		}
		hot[e.key] = times
	}
	return hot
}

// judgeRun checks everything that was published.
func (r *lossRun) judgeRun(t *testing.T) {
	t.Helper()
	for _, e := range r.entries {
		r.judgeBounds(e)
	}
	listed := make(map[int]bool)
	for _, e := range r.events {
		if e.hot != nil && !listed[e.key] {
			r.judgeEntry(e)
		}
		listed[e.key] = e.hot != nil
	}
	hot := r.hotKeys()
	for key := range r.plan.keys {
		k := &r.plan.keys[key]
		times, was := hot[key]
		switch {
		case was && times[1] == math.MaxInt64:
			r.report("%s never cooled", k.member())
		case k.rule != "rate":
			if must := k.value == "star" || k.rule == "jump"; was != must {
				r.report("%s was hot: %v", k.member(), was)
			}
		default:
			for last := r.begin / lossWidth; last*lossWidth < r.end; last++ {
				if n, _ := r.truth.keys[key].window(last); 10*n >= 11*lossThreshold && (!was || times[0] > (last+1)*lossWidth+int64(time.Second)+r.truth.maxLateness()) {
					r.report("%s has %d until %s, and is not hot a second later", k.member(), n, r.since((last+1)*lossWidth))
					break
				}
			}
		}
	}
	for i, wrong := range r.wrong {
		if i == 20 {
			t.Errorf("and %d more", len(r.wrong)-i)
			break
		}
		t.Error(wrong)
	}
	lost, all := r.truth.countLost()
	if late := r.truth.maxLateness(); late > 0 {
		t.Logf("the machine was held up: %d requests were up to %v late", len(r.truth.stalls), time.Duration(late))
	}
	t.Logf("%d of %d packets lost; %d keys were hot; %d bounds of windows that were over, and %d of others; %d of %d windows vague %q",
		lost, all, len(hot), r.closed, r.far, len(r.vague), r.windows, r.vague)
	if r.closed < len(hot) || r.closed < r.far {
		t.Errorf("%d bounds can be of a window that was over, and %d cannot: nothing is shown", r.closed, r.far)
	}
	if r.strange > 1+r.windows/20 {
		t.Errorf("%d of %d bounds of steady keys can be of no window that was over", r.strange, r.windows)
	}
	most := 4 // for so few windows that one in a hundred means nothing
	if r.windows > 150 {
		most = (r.windows + 99) / 100
	}
	if len(r.vague) > most {
		t.Errorf("of %d windows the bounds of %d are not known, or are more than %d apart", r.windows, len(r.vague), lossThreshold/10)
	}
}

// compare compares the hot keys with those of a run without loss.
func (r *lossRun) compare(t *testing.T, lossless *lossRun) {
	t.Helper()
	hot, latest := r.hotKeys(), int64(0)
	for key, want := range lossless.hotKeys() {
		got, ok := hot[key]
		if !ok || got[1] == math.MaxInt64 {
			continue // judge says whether it had to be, and that it never cooled
		}
		late := (got[1] - r.begin) - (want[1] - lossless.begin)
		latest = max(latest, late)
		if late > int64(time.Second)+r.truth.maxLateness() {
			t.Errorf("%s cools at %s, and without loss at %s", r.plan.keys[key].member(), r.since(got[1]), lossless.since(want[1]))
		}
	}
	t.Logf("keys cool up to %v later than without loss", time.Duration(latest))
}
