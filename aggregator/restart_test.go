//go:build !race

// These tests use a single goroutine, so they run only without the race detector.

package aggregator

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Random aggregators crash and restart, hand over to standbys and reload their rules. Through all
// that, no key leaves the hot set unless its count was below the exit for the cool-down, and none
// enters below the threshold. A key cools as soon as a window that was heard whole is below the
// exit, and no published bound is wrong.
func TestRestartsKeepTheHotSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newRestartModel(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		rarity := oneOf(m.Rand, 60, 200) // with few restarts, keys have the time to cool
		for range 300 + m.IntN(400) {
			m.step()
			switch m.IntN(rarity) {
			case 0:
				m.kill()
			case 1:
				m.standby = m.start()
			case 2:
				m.takeOver()
			case 3:
				m.reload()
			}
			m.check(t)
		}
	})
}

// restartModel pairs a fleet's true counts with the claims of its aggregators.
type restartModel struct {
	*rand.Rand
	rules    *decode.Numbered
	rule     *rules.Rule
	tick     time.Duration
	now      time.Time
	texts    []string
	rates    []float64          // counts per tick, by key
	debts    []float64          // fractions of a count carried over, by key
	sums     map[string][]int64 // cumulative counts up to each tick, by key
	active   *restartAggregator // nil while it is down
	standby  *restartAggregator // nil if there is none
	redis    map[string]published.Hot
	down     int // ticks
	problems []string
}

// restartAggregator is a process: its detector, and the set that it publishes, or would publish if
// it were active.
type restartAggregator struct {
	m         *restartModel
	detector  *Detector
	started   time.Time
	inherited time.Time
	refreshed time.Time
	hot       map[string]published.Hot
	held      map[string]map[int]time.Time // start of the hold, by key and threshold
}

func newRestartModel(r *rand.Rand) *restartModel {
	per := oneOf(r, [][]time.Duration{{time.Second}, {10 * time.Second}, {time.Second, 10 * time.Second}, {time.Minute, 10 * time.Second}, {10 * time.Minute, time.Minute}, {10 * time.Minute}}...)
	rule := hotRule("r", 1, time.Second)
	rule.Hot = nil
	m := &restartModel{Rand: r, now: noon, tick: time.Hour, sums: make(map[string][]int64), redis: make(map[string]published.Hot)}
	for _, d := range per {
		h := rules.NewThreshold(rules.Rate{N: 20 + m.Int64N(181), Per: d})
		if m.IntN(2) == 0 { // as high as that of the shortest window
			h.Rate.N *= int64(d / slices.Min(per))
		}
		h.Kind = oneOf(m.Rand, []rules.ThresholdKind{rules.FixedRate, rules.FixedRate, rules.Share, rules.Top, rules.Jump}...)
		h.Factor, h.Top = rules.Fraction{Num: 2, Den: 1}, 1+m.IntN(2)
		if h.Kind == rules.Share {
			h.Factor = rules.Percent(40)
		}
		w := h.Window()
		h.Hold = w.Pane * time.Duration(m.IntN(31))
		h.CoolDown = w.Pane * time.Duration(m.IntN(21))
		rule.Hot = append(rule.Hot, h)
		m.tick = min(m.tick, w.Pane)
	}
	if m.IntN(2) == 0 {
		rule.Except = []rules.Exception{{Values: []rules.QueryMatch{{Name: "q", Value: "b"}}, Rate: rules.Rate{N: 300, Per: per[0]}}}
	}
	for _, q := range []string{"a", "b", "c"} {
		m.texts = append(m.texts, "GET /s?q="+q)
	}
	m.rates, m.debts = make([]float64, len(m.texts)), make([]float64, len(m.texts))
	m.rules = decode.NumberRules(testRules(rule))
	m.rule = &m.rules.InOrder().Rules[0]
	m.active = m.start()
	return m
}

// start returns a new aggregator that has published nothing yet.
func (m *restartModel) start() *restartAggregator {
	a := &restartAggregator{m: m, started: m.now, hot: make(map[string]published.Hot), held: make(map[string]map[int]time.Time)}
	a.detector = NewDetector(DetectorConfig{Rules: m.rules.InOrder(), Publisher: a, Start: m.now, OnVerdict: a.onVerdict})
	return a
}

// step counts the requests of a tick.
func (m *restartModel) step() {
	m.now = m.now.Add(m.tick)
	for i := range m.rates {
		if m.IntN(81) == 0 {
			h := &m.rule.Hot[m.IntN(len(m.rule.Hot))]
			of := oneOf(m.Rand, []float64{0, 0, 0.5, 0.85, 0.95, 1.05, 1.5, 4}...)
			m.rates[i] = of * float64(h.Rate.N) * float64(m.tick) / float64(h.Rate.Per)
		}
	}
	counts := make([]int64, len(m.texts))
	for i, text := range m.texts {
		m.debts[i] += m.rates[i]
		counts[i] = int64(m.debts[i])
		m.debts[i] -= float64(counts[i])
		before := int64(0)
		if all := m.sums[text]; len(all) > 0 {
			before = all[len(all)-1]
		}
		m.sums[text] = append(m.sums[text], before+counts[i])
	}
	for _, a := range []*restartAggregator{m.active, m.standby} {
		if a == nil {
			continue
		}
		a.detector.Advance(m.now)
		for i, text := range m.texts {
			if counts[i] > 0 {
				a.detector.Count(decode.Count{Hash: rules.Hash([]byte(text)), Text: []byte(text), N: counts[i], When: m.now})
			}
		}
		if m.now.Sub(a.refreshed) >= time.Second {
			a.refreshed = m.now
			a.detector.Refresh()
		}
	}
	if m.active == nil {
		if m.down--; m.down <= 0 {
			m.active = m.start()
			m.active.inherit(m.redis)
		}
	}
}

// kill stops the aggregator. A new one starts some time later.
func (m *restartModel) kill() {
	if m.active != nil {
		if m.IntN(2) == 0 {
			m.active.detector.Refresh()
		}
		m.redis, m.active = m.active.hot, nil
	}
	m.down = m.IntN(1 + int(14*time.Second/m.tick))
}

// takeOver ends the aggregator and replaces it by the standby.
func (m *restartModel) takeOver() {
	if m.standby == nil {
		return
	}
	if m.active != nil {
		m.redis = m.active.hot
	}
	m.active, m.standby = m.standby, nil
	m.active.inherit(m.redis)
	if m.IntN(2) == 0 {
		m.standby = m.start()
	}
}

// reload puts rules with another limit in force.
func (m *restartModel) reload() {
	rule := *m.rule
	rule.Limit = &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 1 + m.Int64N(9), Per: time.Second}, Burst: 9}, Mode: rules.ModeLimit}
	next := m.rules.Next(testRules(rule))
	for _, a := range []*restartAggregator{m.active, m.standby} {
		if a != nil {
			a.detector.Reload(next, homes(next.ByNumber(), 1), m.now)
		}
	}
	m.rules = next
	m.rule = &next.InOrder().Rules[0]
}

// inherit takes over the hot set that another aggregator has published.
func (a *restartAggregator) inherit(redis map[string]published.Hot) {
	var hot []published.Hot
	for _, text := range slices.Sorted(maps.Keys(redis)) {
		h := redis[text]
		hot, a.hot[text] = append(hot, h), h
		names := append(strings.Split(h.Also, ","), fmt.Sprint(h.Cause.Kind, "/", h.Cause.Rate.Per))
		for i := range a.m.rule.Hot {
			th := &a.m.rule.Hot[i]
			if slices.Contains(names, fmt.Sprint(th.Kind, "/", th.Rate.Per)) {
				a.hold(text, i, h.Since)
			}
		}
	}
	a.inherited = a.m.now
	a.detector.Inherit(hot, a.m.now)
}

func (a *restartAggregator) hold(text string, threshold int, since time.Time) {
	if a.held[text] == nil {
		a.held[text] = make(map[int]time.Time)
	}
	if _, ok := a.held[text][threshold]; !ok {
		a.held[text][threshold] = since
	}
}

func (a *restartAggregator) fail(format string, args ...any) {
	if len(a.m.problems) < 5 {
		a.m.problems = append(a.m.problems, fmt.Sprintf(format, args...))
	}
}

func (a *restartAggregator) onVerdict(v Verdict) {
	i := slices.IndexFunc(a.m.rule.Hot, func(th rules.Threshold) bool { return th.Kind == v.Threshold.Kind && th.Rate == v.Threshold.Rate })
	w := v.Threshold.Window()
	switch v.Kind {
	case Entered:
		last := w.Index(v.At)
		if v.Threshold.Kind == rules.Share || v.Threshold.Kind == rules.Top {
			last = w.Index(v.At) - 1
		}
		if !a.m.reaches(i, v.Text, last) {
			a.fail("%v: %s became hot by %d: low %d, the truth is %d", v.At, v.Text, i, v.Low, a.m.sum(w, v.Text, last, w.Panes))
		}
		a.hold(v.Text, i, v.At)
	case Left:
		a.leaves(v.Text, i, w.Index(v.At)-1)
		delete(a.held[v.Text], i)
	}
}

// leaves checks that a threshold was right to release a key by the window that ends with a pane.
func (a *restartAggregator) leaves(text string, i int, last int64) {
	w := a.m.rule.Hot[i].Window()
	for back := int64(0); time.Duration(back)*w.Pane <= a.m.rule.Hot[i].CoolDown; back++ {
		if !a.m.mayBeBelow(i, text, last-back) {
			a.fail("%s left by %d at the end of pane %d, was at the exit %d before: %d, started %v, now %v", text, i, last, back, a.m.sum(w, text, last-back, w.Panes), a.started.Sub(noon), a.m.now.Sub(noon))
			return
		}
	}
}

func (a *restartAggregator) Publish(c published.Change) {
	for _, h := range c.Hot {
		if before, ok := a.hot[h.Text]; ok && before.Since.Before(h.Since) {
			a.fail("%s is hot since %v, was since %v", h.Text, h.Since, before.Since)
		}
		a.hot[h.Text] = h
		a.judgeBounds(&h)
	}
	for _, h := range c.Cool {
		for i := range a.held[h.Text] { // thresholds without a verdict of their own
			a.leaves(h.Text, i, a.m.rule.Hot[i].Window().Index(h.Until)-1)
		}
		delete(a.held, h.Text)
		delete(a.hot, h.Text)
	}
}

func (a *restartAggregator) Refresh(_ int, hot []published.Hot) {
	for _, h := range hot {
		a.hot[h.Text] = h
		a.judgeBounds(&h)
	}
	if len(hot) != len(a.hot) {
		a.fail("%v: %d keys are hot, published are %+v, started %v standby %v", a.m.now, len(hot), a.hot, a.started, a == a.m.standby)
	}
}

func (*restartAggregator) Instances([]published.Instance) {}
func (*restartAggregator) Suspects(int, []published.Hot)  {}

// judgeBounds compares published bounds with the newest complete window and the present one, since
// the bounds do not state to which they belong.
func (a *restartAggregator) judgeBounds(h *published.Hot) {
	w := rules.NewWindow(h.Cause.Rate.Per)
	over, present := a.m.sum(w, h.Text, w.Index(a.m.now)-1, w.Panes), a.m.sum(w, h.Text, w.Index(a.m.now), w.Panes)
	if h.Low > max(over, present) || h.High != published.Unknown && h.High < min(over, present) {
		a.fail("%v: %s counts %d to %d, the truth is %d or %d", a.m.now, h.Text, h.Low, h.High, over, present)
	}
}

// check checks that no key stayed hot for too long, and reports the problems found so far.
func (m *restartModel) check(t *rapid.T) {
	if a := m.active; a != nil {
		for text := range a.hot {
			if due, ok := a.due(text); ok && m.now.After(due) {
				a.fail("%v: %s is hot, was to cool at %v", m.now, text, due)
			}
		}
	}
	if len(m.problems) > 0 {
		t.Fatalf("%v, thresholds %+v", strings.Join(m.problems, "\n"), m.rule.Hot)
	}
}

// due returns the time by which a hot key has to be cool if its counts stay as they are.
func (a *restartAggregator) due(text string) (due time.Time, ok bool) {
	for i, since := range a.held[text] {
		h := &a.m.rule.Hot[i]
		w := h.Window()
		last := w.Index(a.m.now) // not over, but it may have risen already
		below := last
		for a.m.isBelow(i, text, below) && below > last-int64(w.Panes)-200 {
			below--
		}
		if below == last {
			return due, false
		}
		wholeWindow := base.Later(w.Start(below+2), a.started.Add(h.Rate.Per+2*w.Pane))
		// The state of an inherited key in earlier windows is known as long as these are kept, but
		// not its rank.
		kept := decode.DefaultGrace
		if h.Kind == rules.Top {
			kept = 0
		}
		stateKnown := base.Later(wholeWindow, a.inherited.Add(-kept))
		mayCool := base.Later(stateKnown.Add(h.CoolDown), base.Later(since, a.started).Add(h.Hold))
		due = base.Later(due, base.Later(mayCool, a.inherited).Add(2*w.Pane+2*a.m.tick))
	}
	return due, !due.IsZero()
}

// sum returns the true count of a key in some panes that end with last.
func (m *restartModel) sum(w rules.Window, text string, last int64, panes int) int64 {
	all := m.sums[text]
	upTo := func(pane int64) int64 { // counts before the pane: tick i is at noon + (i+1) ticks
		n := int((w.Start(pane).Sub(noon) - 1) / m.tick)
		if n <= 0 || len(all) == 0 {
			return 0
		}
		return all[min(n, len(all))-1]
	}
	return upTo(last+1) - upTo(last+1-int64(panes))
}

// least returns the least count of a key at threshold i.
func (m *restartModel) least(i int, text string) int64 {
	h := &m.rule.Hot[i]
	if len(m.rule.Except) > 0 && strings.HasSuffix(text, "=b") && h.Kind == rules.FixedRate && h.Rate.Per == m.rule.Except[0].Rate.Per {
		return m.rule.Except[0].Rate.N
	}
	return h.Rate.N
}

// rivals returns the counts of the other keys that have the least count, the highest first.
func (m *restartModel) rivals(i int, text string, last int64) (counts []int64) {
	w := m.rule.Hot[i].Window()
	for _, other := range m.texts {
		if n := m.sum(w, other, last, w.Panes); other != text && n >= m.rule.Hot[i].Rate.N {
			counts = append(counts, n)
		}
	}
	slices.SortFunc(counts, descending)
	return counts
}

// means returns the lowest and the highest mean count per window, over one to ten windows before
// the one that ends with last.
func (m *restartModel) means(w rules.Window, text string, last int64) (low, high float64) {
	low = math.Inf(1)
	for panes := w.Panes; panes <= 11*w.Panes; panes++ {
		mean := float64(m.sum(w, text, last-int64(w.Panes), panes)) * float64(w.Panes) / float64(panes)
		low, high = min(low, mean), max(high, mean)
	}
	return low, high
}

func (m *restartModel) total(w rules.Window, last int64) (sum int64) {
	for _, text := range m.texts {
		sum += m.sum(w, text, last, w.Panes)
	}
	return sum
}

// reaches reports whether the true count of a key in the window that ends with last reaches
// threshold i. A jump may use any baseline.
func (m *restartModel) reaches(i int, text string, last int64) bool {
	h := &m.rule.Hot[i]
	w := h.Window()
	n := m.sum(w, text, last, w.Panes)
	if n < m.least(i, text) {
		return false
	}
	switch h.Kind {
	case rules.Share:
		return 100*n >= 40*m.total(w, last)
	case rules.Top:
		rivals := m.rivals(i, text, last)
		return len(rivals) < h.Top || n > rivals[h.Top-1]
	case rules.Jump:
		low, _ := m.means(w, text, last)
		return float64(n) >= 2*low-2
	}
	return true
}

// isBelow reports whether the true count of a key is certainly below the exit of threshold i.
func (m *restartModel) isBelow(i int, text string, last int64) bool {
	w := m.rule.Hot[i].Window()
	return 5*m.sum(w, text, last, w.Panes) < 4*m.least(i, text)
}

// mayBeBelow reports whether the true count may be below the exit. A jump may use any baseline.
func (m *restartModel) mayBeBelow(i int, text string, last int64) bool {
	h := &m.rule.Hot[i]
	w := h.Window()
	n := m.sum(w, text, last, w.Panes)
	switch h.Kind {
	case rules.Share:
		return m.isBelow(i, text, last) || 5*100*n < 4*40*m.total(w, last)
	case rules.Top:
		rivals := m.rivals(i, text, last)
		return m.isBelow(i, text, last) || len(rivals) >= h.Top && 5*n < 4*rivals[h.Top-1]
	case rules.Jump:
		_, high := m.means(w, text, last)
		return m.isBelow(i, text, last) || float64(n) < 0.8*2*high+2
	}
	return m.isBelow(i, text, last)
}

func oneOf[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// A share needs a total that was heard whole. Until then it makes no key hot.
func TestTotalsWaitForAWholeWindow(t *testing.T) {
	rule := hotRule("r", 10, 10*time.Second)
	rule.Hot[0].Kind, rule.Hot[0].Factor = rules.Share, rules.Percent(50)
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Start: noon})
	for at := time.Duration(0); at < 20*time.Second; at += 100 * time.Millisecond {
		d.Advance(noon.Add(at))
		if at < 10*time.Second && len(out.changes) > 0 {
			t.Fatalf("after %v: %+v, want nothing before a whole window was heard", at, out.changes)
		}
		d.Count(decode.Count{Hash: testHash("GET /s?q=k"), Text: []byte("GET /s?q=k"), N: 2, When: noon.Add(at)})
	}
	if len(out.hot()) != 1 {
		t.Errorf("hot are %v when the window is whole, want the key", out.hot())
	}
}

// A clock that is set back drops no hot key. The key stays hot, with an unknown high count, until
// windows that were heard whole by the new clock say otherwise. It does not wait until the clock
// reaches the old time again.
func TestClocksThatAreSetDropNoHotKey(t *testing.T) {
	for _, sets := range [][]time.Duration{{-time.Minute}, {-time.Hour}, {-3 * time.Minute, -2 * time.Hour, -time.Minute}, {time.Minute}, {3 * time.Hour, -2 * time.Minute, time.Minute}} {
		rule := hotRule("r", 100, time.Second)
		long := rule.Hot[0]
		long.Rate = rules.Rate{N: 500, Per: 10 * time.Second}
		rule.Hot = append(rule.Hot, long)
		for i := range rule.Hot {
			rule.Hot[i].Hold, rule.Hot[i].CoolDown = time.Second, time.Second
		}
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Start: noon})
		now, cooled := noon, 0
		run := func(span time.Duration, n int64) {
			for end := now.Add(span); now.Before(end); now = now.Add(100 * time.Millisecond) {
				d.Advance(now)
				if n > 0 {
					d.Count(decode.Count{Hash: testHash("q=k"), Text: []byte("q=k"), N: n, When: now})
				}
			}
			for _, c := range out.changes {
				cooled += len(c.Cool)
			}
			out.changes = nil
		}
		run(15*time.Second, 15)
		for _, by := range sets {
			if now = now.Add(by); by > 0 {
				d.restartShort(now, by)
			}
			run(500*time.Millisecond, 9) // hot keys stay so
			if h := d.Listed(); cooled > 0 || len(h) != 1 || h[0].High != published.Unknown || h[0].Since.After(now) {
				t.Errorf("clock set by %v of %v: hot %+v, cooled %d keys", by, sets, h, cooled)
			}
			run(14*time.Second, 9)
			if h := d.Listed(); cooled > 0 || len(h) != 1 || h[0].Low > 900 || h[0].High < h[0].Low {
				t.Errorf("clock set by %v of %v: 14 s after that hot %+v, cooled %d keys", by, sets, h, cooled)
			}
		}
		run(14*time.Second, 0)
		if len(d.Listed()) > 0 || cooled != 1 {
			t.Errorf("clock set by %v: 14 s after its end %v hot, cooled %d", sets, d.Listed(), cooled)
		}
	}
}

// The monotonic clock reveals a step of the wall clock, and time that simply passes is no step.
func TestSetClockIsNoticed(t *testing.T) {
	// The wall clock of a time of [time.Now] has its seconds in bits 30 to 62.
	set := func(now time.Time, by time.Duration) time.Time {
		*(*uint64)(unsafe.Pointer(&now)) += uint64(by/time.Second) << 30
		return now
	}
	var c wallClock
	now := time.Now()
	for _, step := range []struct{ passes, set, want time.Duration }{
		{0, 0, 0}, {time.Second, 0, 0}, {time.Hour, 0, 0}, {0, time.Minute, time.Minute}, {time.Second, time.Hour, time.Hour}, {time.Second, 0, 0}, {time.Second, -time.Hour, 0}, {0, 0, 0},
	} {
		now = set(now.Add(step.passes), step.set)
		if got := c.forwardStep(now); got != step.want {
			t.Errorf("%+v: %v", step, got)
		}
	}
}
