//go:build !race

// These tests use a single goroutine, so they run only without the race detector.

package aggregator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Through any sequence of reloads a detector's bounds hold the true counts: low ≤ truth ≤ high.
// High is known as soon as a window contains no time from before it existed. Windows that keep
// their shape count exactly. A hot key stays listed while its rule exists, with the limit that is
// in force.
func TestClaimsHoldThroughReloads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newReloadModel(t)
		steps := rapid.IntRange(20, 90).Draw(t, "steps")
		for range steps {
			m.now = m.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond)
			if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
				m.reload(t)
			} else {
				m.send(t)
			}
			m.check(t)
		}
		m.coolAll(t)
	})
}

var reloadTexts = []string{"GET /s?q=a", "GET /s?q=b", "GET /s?q=c", "GET /s?q=d"}

// reloadShape is the part of a rule that determines its counts. A rule with another shape counts
// as another rule.
type reloadShape struct {
	id    string
	unit  rules.Unit
	by    rules.ByKind
	whole bool // all its keys are counted in one place
}

type reloadModel struct {
	memory  int64
	shards  *Shards
	decoder *decode.Decoder
	out     *recorder
	rules   *decode.Numbered
	now     time.Time
	flooded bool // there may be no room for the texts of all hot keys

	counts map[reloadShape]map[string][]stamped
	since  map[reloadShape]map[time.Duration]time.Time // time from which a window's counts are complete
	former map[string][]formerShape                    // earlier shapes that instances may still count by
}

func newReloadModel(t *rapid.T) *reloadModel {
	m := &reloadModel{
		out: newRecorder(), now: noon, memory: rapid.SampledFrom([]int64{MinMemory, 8 << 20}).Draw(t, "memory"),
		counts: make(map[reloadShape]map[string][]stamped), since: make(map[reloadShape]map[time.Duration]time.Time), former: make(map[string][]formerShape),
	}
	rules := drawReloadRules(t)
	m.rules = decode.NumberRules(rules)
	m.shards = NewShards(DetectorConfig{Rules: rules, Publisher: m.out, Memory: m.memory, Lag: 100 * time.Millisecond}, rapid.IntRange(1, 3).Draw(t, "shards"), 1)
	m.decoder = decode.NewDecoder(rules, wire.Plain)
	m.decoder.Canonical = true
	m.know(rules, time.Time{})
	return m
}

// drawReloadRules draws some of the rules r0, r1 and r2, in any order.
func drawReloadRules(t *rapid.T) *rules.Rules {
	ruleset := testRules()
	for _, i := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "order")[:rapid.IntRange(0, 3).Draw(t, "rules")] {
		rule := hotRule(fmt.Sprint("r", i), 1, time.Second)
		rule.By.Kind = rapid.SampledFrom([]rules.ByKind{rules.ByAll, rules.ByAll, rules.ByAll, rules.ByEach}).Draw(t, "by")
		rule.Count = rapid.SampledFrom([]rules.Unit{rules.Requests, rules.Requests, rules.Requests, rules.Bytes}).Draw(t, "unit")
		rule.Hot = nil
		for range rapid.IntRange(1, 2).Draw(t, "thresholds") {
			h := rules.NewThreshold(rules.Rate{N: rapid.Int64Range(1, 30).Draw(t, "n"), Per: rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second, 7 * time.Second}).Draw(t, "per")})
			h.Kind = rapid.SampledFrom([]rules.ThresholdKind{rules.FixedRate, rules.FixedRate, rules.FixedRate, rules.Jump, rules.Share, rules.Top}).Draw(t, "kind")
			h.Factor, h.Top = rules.Fraction{Num: 2, Den: 1}, 2
			if h.Kind == rules.Share {
				h.Factor = rules.Percent(40)
			}
			h.Hold, h.CoolDown = time.Second, time.Second
			rule.Hot = append(rule.Hot, h)
		}
		if n := rapid.Int64Range(0, 3).Draw(t, "limit"); n > 0 {
			rule.Limit = &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: n, Per: time.Second}, Burst: n}, Mode: rules.ModeLimit}
		}
		if rapid.IntRange(0, 5).Draw(t, "allow") == 0 {
			rule.Except = []rules.Exception{{Values: []rules.QueryMatch{{Name: "q", Value: "a"}}, Action: rules.Allow}}
		}
		ruleset.Rules = append(ruleset.Rules, rule)
	}
	return ruleset
}

// counts reports whether rules of the two shapes count the same.
func (s reloadShape) counts(other reloadShape) bool {
	return s.id == other.id && s.unit == other.unit && s.by == other.by
}

// counted returns the shape without the place where it is counted.
func (s reloadShape) counted() reloadShape {
	s.whole = false
	return s
}

type formerShape struct {
	reloadShape
	until time.Time
}

// settling returns the time until which instances may send counts of the rule with another shape.
func (m *reloadModel) settling(shape reloadShape, now time.Time) (until time.Time) {
	for _, f := range m.former[shape.id] {
		if !f.counts(shape) && f.until.After(now) && f.until.After(until) {
			until = f.until
		}
	}
	return until
}

func shapeOf(r *rules.Rule) reloadShape {
	return reloadShape{r.ID, r.Count, r.By.Kind, r.Whole() || r.Overlaps()}
}

// know records the windows that exist from an instant on.
func (m *reloadModel) know(rules *rules.Rules, now time.Time) {
	before := m.since
	m.since = make(map[reloadShape]map[time.Duration]time.Time)
	for i := range rules.Rules {
		r := &rules.Rules[i]
		shape := shapeOf(r)
		windows := make(map[time.Duration]time.Time)
		from := now
		if until := m.settling(shape, now); until.After(from) {
			from = until
		}
		for _, h := range r.Hot {
			windows[h.Rate.Per] = from
			if since, ok := before[shape][h.Rate.Per]; ok {
				windows[h.Rate.Per] = since
			}
		}
		m.since[shape] = windows
	}
}

// reload puts other rules in force. Some instances may continue to count by the former ones for a
// while.
func (m *reloadModel) reload(t *rapid.T) {
	ruleset := drawReloadRules(t)
	listed := m.out.hot()
	next := m.rules.Next(ruleset)
	for _, number := range m.numbers() {
		was := shapeOf(&m.rules.ByNumber().Rules[number])
		at := slices.IndexFunc(ruleset.Rules, func(r rules.Rule) bool { return shapeOf(&r).counts(was) })
		if at < 0 {
			m.former[was.id] = append(m.former[was.id], formerShape{was, m.now.Add(settleTime)})
		}
	}
	m.decoder.Reload(next)
	m.shards.Reload(next, m.now)
	before := m.rules
	m.rules = next
	m.know(ruleset, m.now)
	now := m.out.hot()
	for key := range listed {
		number, was := next.NumberOf(key.Rule), before.NumberOf(key.Rule)
		_, is := now[key]
		if number < 0 {
			if is {
				t.Fatalf("%v is listed, and its rule is gone", key)
			}
			continue
		}
		r := &next.ByNumber().Rules[number]
		x := r.Exception(key.Text)
		if stays := r.SameKeys(&before.ByNumber().Rules[was]) && x == nil; is != stays && (is || !m.flooded) { // else there may be no room
			t.Fatalf("%v is listed: %t, want %t", key, is, stays)
		}
	}
	for key, h := range now {
		number := next.NumberOf(key.Rule)
		if number < 0 {
			t.Fatalf("%v is listed, and there is no such rule", key)
		}
		if rate, burst, mode := next.ByNumber().Rules[number].Limit.Published(); h.Limit != rate || h.Burst != burst || h.Mode != mode {
			t.Fatalf("%v is published with limit %v, burst %d, mode %q, in force are %v, %d, %q", key, h.Limit, h.Burst, h.Mode, rate, burst, mode)
		}
	}
	used := int64(0)
	for _, s := range m.shards.shards {
		for _, r := range s.detector.watches {
			for _, v := range r.views {
				used += v.memory()
			}
		}
	}
	if used > m.memory {
		t.Fatalf("windows hold %d bytes of %d", used, m.memory)
	}
}

// send counts a packet of lines, each of any rule, whether or not it is in force.
func (m *reloadModel) send(t *rapid.T) {
	f := m.shards.Feed(0)
	f.Begin()
	var packet []byte
	add := func(id, text string, n int64) {
		var shape reloadShape
		number := m.rules.NumberOf(id)
		if number >= 0 {
			shape = shapeOf(&m.rules.ByNumber().Rules[number])
		}
		if m.settling(shape, m.now).After(m.now) && rapid.Bool().Draw(t, "old") {
			n *= 1000 // in the former rule's unit, so it is not a count of the present rule
		} else if number >= 0 {
			if m.counts[shape.counted()] == nil {
				m.counts[shape.counted()] = make(map[string][]stamped)
			}
			m.counts[shape.counted()][text] = append(m.counts[shape.counted()][text], stamped{m.now, n})
		}
		packet = append(packet, "shop."+id+".hot_param."...)
		packet = wire.Plain.Append(packet, []byte(text))
		packet = fmt.Appendf(packet, ":%d|c\n", n)
	}
	for range rapid.IntRange(0, 4).Draw(t, "lines") {
		add(fmt.Sprint("r", rapid.IntRange(0, 2).Draw(t, "rule")), rapid.SampledFrom(reloadTexts).Draw(t, "key"), rapid.Int64Range(1, 12).Draw(t, "count"))
	}
	if rapid.IntRange(0, 30).Draw(t, "flood") == 0 {
		m.flooded = true
		for i := range 2000 {
			add("r0", fmt.Sprint("GET /s?q=x", i), 1)
		}
	}
	m.decoder.Packet(packet, m.now, f)
	f.End(m.now, m.now, false)
}

// check compares all windows with the true counts.
func (m *reloadModel) check(t *rapid.T) {
	f := m.shards.Feed(0)
	f.Begin()
	f.End(m.now, m.now, false)
	listed := m.out.hot()
	for _, number := range m.numbers() {
		rule := &m.rules.ByNumber().Rules[number]
		counts := m.counts[shapeOf(rule).counted()]
		for _, text := range reloadTexts {
			hash := rules.Hash([]byte(text))
			d := m.shards.shards[f.(*feed).place(number, hash)].detector
			for _, v := range d.rules[number].views {
				since := m.since[shapeOf(rule)][v.thresholds[0].Rate.Per]
				for _, end := range []int64{v.Now(), v.Now() - 1, v.closed} {
					m.checkWindow(t, v, text, end, counts, since)
				}
				m.checkBaseline(t, v, text, counts[text])
				for _, h := range v.thresholds {
					now := v.Index(m.now)
					_, is := listed[rules.Key{Rule: rule.ID, Text: text}]
					sum := sumPanes(v.Window.Window, counts[text], now)
					if h.Kind == rules.FixedRate && since.IsZero() && sum >= h.Rate.N && rule.Exception(text) == nil && m.countedNow(counts[text]) && !m.flooded && !is {
						t.Fatalf("%s %q counts %d of %d and is not listed", rule.ID, text, sum, h.Rate.N)
					}
				}
			}
		}
	}
}

func (m *reloadModel) countedNow(counts []stamped) bool {
	return len(counts) > 0 && counts[len(counts)-1].when.Equal(m.now)
}

func (m *reloadModel) numbers() (all []int) {
	for number := range m.rules.ByNumber().Rules {
		if m.rules.Has(number) {
			all = append(all, number)
		}
	}
	return all
}

func (m *reloadModel) checkWindow(t *rapid.T, v *view, text string, end int64, counts map[string][]stamped, since time.Time) {
	truth := sumPanes(v.Window.Window, counts[text], end)
	low, high := v.Span(rules.Hash([]byte(text)), []byte(text), end, int64(v.Panes))
	where := fmt.Sprintf("%s %q in %v that ends with pane %d (now %d)", v.watch.rule.ID, text, v.thresholds[0].Rate.Per, end, v.Now())
	isWhole := since.IsZero() || end-int64(v.Panes) >= v.Index(since)
	switch {
	case low > truth || high != published.Unknown && high < truth:
		t.Fatalf("%s: %d to %d, counted were %d", where, low, high, truth)
	case isWhole && high == published.Unknown:
		t.Fatalf("%s: high is unknown, and its window holds nothing of before %v", where, since)
	case isWhole && m.memory > MinMemory && (low != truth || high != truth):
		t.Fatalf("%s: %d to %d, counted were exactly %d", where, low, high, truth)
	}
	if v.groups == nil || v.watch.overlaps {
		return
	}
	total := int64(0)
	for _, of := range counts {
		total += sumPanes(v.Window.Window, of, end)
	}
	if low, high = v.groups.Bounds(v.Window, []byte(text), end); low > total || high != published.Unknown && high < total {
		t.Fatalf("%s: the total is %d to %d, counted were %d", where, low, high, total)
	}
}

func (m *reloadModel) checkBaseline(t *rapid.T, v *view, text string, counts []stamped) {
	i := v.Find(rules.Hash([]byte(text)), []byte(text))
	if v.history == nil || i < 0 {
		return
	}
	last := v.closed
	low, high, windows := v.history.Baseline(v.Window, i, []byte(text), last, true)
	to := last - int64(v.Panes)
	truth := sumBetween(v.Window.Window, counts, to-windows.Num+1, to)
	if high != published.Unknown && (low > truth || high < truth) {
		t.Fatalf("%s %q: the baseline of %v is %d to %d, counted were %d", v.watch.rule.ID, text, windows, low, high, truth)
	}
}

// coolAll waits until no key can be hot.
func (m *reloadModel) coolAll(t *rapid.T) {
	f := m.shards.Feed(0)
	for range 250 {
		m.now = m.now.Add(100 * time.Millisecond)
		f.Begin()
		f.End(m.now, m.now, false)
	}
	if hot := m.out.hot(); len(hot) > 0 {
		t.Fatalf("hot without counts: %v", hot)
	}
}
