package aggregator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// starts are instants at the edges of the panes' arithmetic.
var starts = []time.Time{
	time.Unix(0, 0),
	time.Unix(0, -1),
	time.Date(1969, 12, 31, 23, 59, 58, 123456789, time.UTC),
	time.Date(1901, 5, 6, 7, 8, 9, 10, time.UTC),
	time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC),
}

var testWindows = []time.Duration{
	time.Second, 1050 * time.Millisecond, 2 * time.Second, 7 * time.Second,
	10 * time.Second, 15 * time.Second, time.Minute, 3 * time.Minute, time.Hour,
}

// drawRules draws rules with all kinds of thresholds, several windows per rule, and exceptions.
func drawRules(t *rapid.T) *rules.Rules {
	ruleset := testRules()
	for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
		rule := hotRule(fmt.Sprint("r", i), 1, time.Second)
		rule.Hot = nil
		for range rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "thresholds") {
			rule.Hot = append(rule.Hot, drawThreshold(t))
		}
		if first := rule.Hot[0]; rapid.Bool().Draw(t, "exception") {
			x := rules.Exception{Values: []rules.QueryMatch{{Name: "k", Value: "a"}}, Action: rules.Allow}
			if first.Kind == rules.FixedRate && rapid.Bool().Draw(t, "adjust") {
				x.Action, x.Rate = rules.Adjust, rules.Rate{N: rapid.Int64Range(1, 60).Draw(t, "other threshold"), Per: first.Rate.Per}
			}
			rule.Except = []rules.Exception{x}
		}
		ruleset.Rules = append(ruleset.Rules, rule)
	}
	return ruleset
}

func drawThreshold(t *rapid.T) rules.Threshold {
	th := rules.Threshold{
		Kind:     rapid.SampledFrom([]rules.ThresholdKind{rules.FixedRate, rules.FixedRate, rules.Share, rules.Jump, rules.Top}).Draw(t, "kind"),
		Rate:     rules.Rate{N: rapid.Int64Range(1, 40).Draw(t, "threshold"), Per: rapid.SampledFrom(testWindows).Draw(t, "window")},
		Hold:     rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 10 * time.Second}).Draw(t, "hold"),
		CoolDown: rapid.SampledFrom([]time.Duration{0, 0, 300 * time.Millisecond, 2 * time.Second, 5 * time.Second}).Draw(t, "cool down"),
	}
	th.Exit = rapid.SampledFrom([]rules.Fraction{rules.Percent(1), rules.Percent(33), rules.Percent(50), rules.Percent(80), rules.Percent(100), {Num: 2, Den: 3}, {Num: 12345, Den: 98765}}).Draw(t, "exit")
	switch th.Kind {
	case rules.Share:
		th.Factor = rules.Percent(rapid.SampledFrom([]int64{10, 30, 50, 100}).Draw(t, "share"))
	case rules.Jump:
		th.Factor = rules.Percent(rapid.SampledFrom([]int64{110, 200, 800}).Draw(t, "jump"))
	case rules.Top:
		th.Top = rapid.IntRange(1, 3).Draw(t, "top")
	}
	return th
}

// testTexts are keys of two groups, one under the exception, and the reserved ones.
var testTexts = []string{
	"GET /s?k=a", "GET /s?k=b", "GET /s?k=c", "GET /s?j=1&k=a", "GET /s?j=1&k=d",
	"GET /s?~more", "GET /s?form:~unread", "GET /s?~again&k", "GET /s?~again&j&k",
}

// drawStep draws how far the clock moves: usually about a pane, sometimes far beyond every window.
func drawStep(t *rapid.T, w rules.Window) time.Duration {
	window := w.Pane * time.Duration(w.Panes)
	most := rapid.SampledFrom([]time.Duration{w.Pane / 4, w.Pane, 2 * w.Pane, window / 4, 2 * window, 10 * 24 * time.Hour}).Draw(t, "scale")
	return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, "step"))
}

// pair couples a detector with the model that it must agree with.
type pair struct {
	*rapid.T
	rules    *rules.Rules
	model    *exact
	detector *Detector
	out      *recorder
	now      time.Time
	late     time.Duration // maximum lateness of counts

	follows  bool // the clock follows complete instead of a lag
	complete time.Time
}

// when draws the time of the next count.
func (p *pair) when() time.Time {
	return p.now.Add(-time.Duration(rapid.Int64Range(0, int64(p.late)).Draw(p.T, "late")))
}

func (p *pair) step(d time.Duration) {
	p.now = p.now.Add(d)
	if !p.follows {
		p.model.advance(p.now)
		p.detector.Advance(p.now)
		return
	}
	if c := p.when(); c.After(p.complete) { // else it has stalled
		p.complete = c
	} else if oldest := p.now.Add(-p.late); oldest.After(p.complete) {
		p.complete = oldest
	}
	p.model.advanceTo(p.now, p.complete)
	p.detector.AdvanceTo(p.now, p.complete)
}

func (p *pair) count(rule int, text string, n int64) {
	when := p.when()
	p.model.count(rule, text, when, n)
	p.detector.Count(decode.Count{Rule: rule, Hash: testHash(text), Text: []byte(text), N: n, When: when})
}

// act does something random to both.
func (p *pair) act() {
	rule := rapid.IntRange(0, len(p.rules.Rules)-1).Draw(p.T, "rule")
	hot := p.rules.Rules[rule].Hot[0]
	text := rapid.SampledFrom(testTexts).Draw(p.T, "key")
	switch what := rapid.IntRange(0, 39).Draw(p.T, "what"); {
	case what == 0:
		hidden := stamped{p.when(), rapid.Int64Range(0, 20).Draw(p.T, "hidden")}
		p.model.hidden = append(p.model.hidden, hidden)
		p.detector.AddHiddenCounts(hidden.when, hidden.n)
	case what == 1:
		lost := p.when()
		p.model.lost = append(p.model.lost, lost)
		p.detector.RecordLoss(lost)
	case what < 6: // a steady stream
		n := rapid.Int64Range(1, 1+hot.Rate.N/8).Draw(p.T, "n")
		step := rapid.Int64Range(1, int64(hot.Window().Pane)).Draw(p.T, "step")
		for range rapid.IntRange(1, 30).Draw(p.T, "times") {
			p.step(time.Duration(step))
			p.count(rule, text, n)
		}
	case what < 16:
		p.step(drawStep(p.T, hot.Window()))
	default:
		p.count(rule, text, rapid.Int64Range(1, 1+hot.Rate.N/2).Draw(p.T, "n"))
	}
}

// A detector with enough memory agrees exactly with the model. A key becomes hot with the first
// count, or end of a pane, that certainly passes a threshold. It cools at the end of the first
// pane at which no threshold holds it any longer.
func testDetectorIsExact(t *testing.T, late time.Duration, follows bool) {
	rapid.Check(t, func(t *rapid.T) {
		rules := drawRules(t)
		lag := rapid.SampledFrom([]time.Duration{0, decode.DefaultLag, decode.DefaultGrace, 5 * time.Second}).Draw(t, "lag")
		out := newRecorder()
		p := &pair{
			T: t, rules: rules, out: out, late: late, follows: follows,
			now:   rapid.SampledFrom(starts).Draw(t, "start"),
			model: newExact(rules, lag),
		}
		var entered []Verdict
		p.detector = NewDetector(DetectorConfig{Rules: rules, Publisher: out, Lag: lag, OnVerdict: func(v Verdict) {
			if v.Kind == Entered {
				entered = append(entered, v)
			}
		}})
		p.step(0)
		for range rapid.IntRange(1, 60).Draw(t, "acts") {
			p.act()
			if got := out.events(); !slices.Equal(got, p.model.events) {
				t.Fatalf("detector tells\n%q\nwant\n%q", got, p.model.events)
			}
		}
		p.checkRefresh()
		if s := p.detector.Stats(); s.Late != 0 || s.Evicted != 0 {
			t.Fatalf("late %d, evicted %d, want none", s.Late, s.Evicted)
		}
		p.checkContinuous(entered)
	})
}

// checkRefresh compares the published bounds and ratios of the hot keys with the model, in the
// newest complete window or the present one, whichever has more.
func (p *pair) checkRefresh() {
	p.detector.Refresh()
	var got, want []string
	for _, hot := range p.out.refresh {
		for _, h := range hot {
			got = append(got, fmt.Sprintf("%v %d %d %.6g", h.Key, h.Low, h.High, h.Ratio))
		}
	}
	for i := range p.model.hot {
		for _, h := range p.model.hot[i] {
			w, counts := p.rules.Rules[i].Hot[h.by].Window(), p.model.counts[exactKey{i, h.text}]
			last, _ := p.model.closedOf(i, w)
			present := func(w rules.Window) int64 {
				if newest := p.model.newest[i]; newest.After(p.model.now) {
					return w.Index(newest)
				}
				return w.Index(p.model.now)
			}
			if sumPanes(w, counts, present(w)) > sumPanes(w, counts, last) {
				last = present(w)
			}
			low := sumPanes(w, counts, last)
			high := low + sumPanes(w, p.model.hidden, last)
			if p.model.lostIn(w, last) {
				high = published.Unknown
			}
			want = append(want, fmt.Sprintf("%v %d %d %.6g", rules.Key{Rule: p.rules.Rules[i].ID, Text: h.text}, low, high, p.model.ratio(i, h, present)))
		}
	}
	if !slices.Equal(got, want) {
		p.Fatalf("refresh tells %q, want %q", got, want)
	}
}

// checkContinuous checks that each key that passed a threshold did so in some half-open interval
// of the window's length, wherever it begins.
func (p *pair) checkContinuous(entered []Verdict) {
	for _, v := range entered {
		rule := slices.IndexFunc(p.rules.Rules, func(r rules.Rule) bool { return r.ID == v.Rule })
		if most := continuous(v.Threshold.Rate.Per, p.model.counts[exactKey{rule, v.Text}]); most < v.Against || v.Low < v.Against {
			p.Fatalf("%s was hot with %d, which reached %d, but no window of %v holds more than %d", v.Key, v.Low, v.Against, v.Threshold.Rate.Per, most)
		}
	}
}

func TestDetectorIsExactInOrder(t *testing.T) { testDetectorIsExact(t, 0, false) }

func TestDetectorIsExactReorderedWithinTheGrace(t *testing.T) {
	testDetectorIsExact(t, decode.DefaultGrace, false)
}

func TestDetectorIsExactWhereItIsToldWhatIsComplete(t *testing.T) {
	testDetectorIsExact(t, decode.DefaultGrace, true)
}

// Late counts find all panes that a past window needs, however long the lag, so a key that never
// paused does not cool.
func TestDetectorKeepsASteadyKeyHotUnderALongLag(t *testing.T) {
	for _, window := range testWindows {
		rule := hotRule("r", 10, window)
		rule.Hot[0].Hold, rule.Hot[0].CoolDown = 0, 0
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Lag: 5 * time.Second})
		step := rule.Hot[0].Window().Pane / 3
		for now := noon; now.Before(noon.Add(2*window + 10*time.Second)); now = now.Add(step) {
			d.Advance(now)
			d.Count(decode.Count{Hash: 1, Text: []byte("k"), N: 10, When: now})
		}
		if got := len(out.changes); got != 1 {
			t.Errorf("window of %v: %d changes, want the key hot once: %q", window, got, out.events())
		}
	}
}

// With too little memory for all keys, every key that is called hot is hot, and every key that
// exceeds the threshold by the floor is called hot.
func TestDetectorShortOfMemoryStaysTrue(t *testing.T) {
	var evicted, hot int64
	rapid.Check(t, func(t *rapid.T) {
		rule := hotRule("r", rapid.Int64Range(25, 60).Draw(t, "threshold"), rapid.SampledFrom(testWindows).Draw(t, "window"))
		ruleset := testRules(rule)
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: ruleset, Publisher: out, Memory: rapid.Int64Range(20_000, 60_000).Draw(t, "memory")})
		model := newExact(ruleset, 0)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		zipf := rand.NewZipf(rnd, 1.02, 2, 3000)
		now := rapid.SampledFrom(starts).Draw(t, "start")
		for range rapid.IntRange(1, 600).Draw(t, "counts") {
			if rnd.IntN(20) == 0 {
				now = now.Add(time.Duration(rnd.Int64N(int64(rule.Hot[0].Window().Pane))))
				d.Advance(now)
			}
			text, n := fmt.Sprint("k", zipf.Uint64()), int64(rnd.IntN(4)+1)
			before := len(out.changes)
			key := exactKey{0, text}
			model.counts[key] = append(model.counts[key], stamped{now, n})
			d.Count(decode.Count{Hash: testHash(text), Text: []byte(text), N: n, When: now})
			truth, _ := model.low(rule.Hot[0].Window(), key, now)
			for _, change := range out.changes[before:] {
				for _, h := range change.Hot {
					if h.Text != text || truth < rule.Hot[0].Rate.N || h.Low > truth || h.High < truth {
						t.Fatalf("%s came, whose count is %d; told %+v", text, truth, h)
					}
				}
			}
			if _, isHot := out.hot()[rules.Key{Rule: "r", Text: text}]; !isHot && truth >= rule.Hot[0].Rate.N+d.Stats().Floor {
				t.Fatalf("%s is not hot: its count is %d, the floor %d", text, truth, d.Stats().Floor)
			}
		}
		evicted += d.Stats().Evicted
		hot += d.Stats().Hot
	})
	if !testing.Short() && (evicted == 0 || hot == 0) {
		t.Errorf("%d evicted, %d hot: the test shows little", evicted, hot)
	}
}

// After a loss nothing cools until the loss has left the window.
func TestDetectorDoesNotCoolOnALoss(t *testing.T) {
	rule := hotRule("r", 10, time.Second)
	rule.Hot[0].Hold, rule.Hot[0].CoolDown = 0, 0
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
	d.Advance(noon)
	d.Count(decode.Count{Hash: 1, Text: []byte("k"), N: 10, When: noon})
	lost := noon.Add(700 * time.Millisecond)
	d.RecordLoss(lost)
	d.Advance(lost.Add(time.Second)) // the window that ends here still holds the pane of the loss
	if len(out.changes) != 1 {
		t.Fatalf("cooled while the window held a loss: %q", out.events())
	}
	d.Advance(lost.Add(time.Second + base.FlushInterval))
	if want := coolEvent("r", "k", lost.Add(time.Second+base.FlushInterval), 0, 0); len(out.changes) != 2 || out.events()[1] != want {
		t.Fatalf("told %q, want %q in the end", out.events(), want)
	}
}

func TestDetectorPublishesWhatTheRuleHoldsAHotKeyTo(t *testing.T) {
	rule := hotRule("terms", 20, 10*time.Second)
	rule.Limit = &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 5, Per: time.Second}, Burst: 9}, Mode: rules.ModeShadow}
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(hotRule("other", 1, time.Second), rule), Publisher: out})
	d.AddHiddenCounts(noon, 3)
	d.Count(decode.Count{Rule: 1, Hash: 1, Text: []byte("k"), N: 25, When: noon})
	want := published.Hot{
		Key: rules.Key{Rule: "terms", Text: "k"}, Low: 25, High: 28, Rate: 2.5, Ratio: 1.25, Since: noon,
		Cause: published.Cause{Rate: rules.Rate{N: 20, Per: 10 * time.Second}},
		Limit: rule.Limit.Rate, Burst: 9, Mode: rules.ModeShadow, Scope: rules.ScopeFleet,
	}
	if got := out.hot()[want.Key]; got != want {
		t.Errorf("published %+v, want %+v", got, want)
	}
}

// However many distinct keys arrive, the memory stays within the budget, and a key that becomes
// hot among them is found.
func TestDetectorFindsAHotKeyInAFloodOfDistinctOnes(t *testing.T) {
	out := newRecorder()
	const memory = 256 << 10
	ruleset := testRules(hotRule("a", 1000, time.Second), hotRule("b", 1000, time.Minute))
	d := NewDetector(DetectorConfig{Rules: ruleset, Publisher: out, Memory: memory})
	now := noon
	var text []byte
	for i := range 100_000 {
		now = now.Add(10 * time.Microsecond)
		if i%1000 == 0 {
			d.Advance(now)
			if used := d.Stats().Memory; used > memory {
				t.Fatalf("%d bytes used of %d", used, memory)
			}
		}
		for rule := range ruleset.Rules {
			text = fmt.Appendf(text[:0], "GET /search?q=%d", i)
			d.Count(decode.Count{Rule: rule, Hash: rules.Hash(text), Text: text, N: 1, When: now})
			if i > 50_000 && i%20 == 0 {
				d.Count(decode.Count{Rule: rule, Hash: 42, Text: []byte("hot"), N: 1, When: now})
			}
		}
	}
	want := map[rules.Key]bool{{Rule: "a", Text: "hot"}: true, {Rule: "b", Text: "hot"}: true}
	for key := range out.hot() {
		if !want[key] {
			t.Errorf("%v is hot", key)
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
	if d.Stats().Evicted == 0 {
		t.Error("nothing was evicted: the test shows little")
	}
}

func TestDetectorCountDoesNotAllocateForKnownKeys(t *testing.T) {
	d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 1<<40, time.Second)), Publisher: newRecorder()})
	now, text := noon, []byte("GET /search?q=phone")
	d.Count(decode.Count{Hash: 1, Text: text, N: 1, When: now})
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(30 * time.Millisecond)
		d.Advance(now)
		d.Count(decode.Count{Hash: 1, Text: text, N: 1, When: now})
		d.Count(decode.Count{Hash: 1, Text: text, N: 1, When: now.Add(-time.Second)})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDetectorCount(b *testing.B) {
	const keys = 1 << 20
	texts, hashes := make([][]byte, keys), make([]uint64, keys)
	for i := range texts {
		texts[i] = fmt.Appendf(nil, "GET /search?q=%d", i)
		hashes[i] = rules.Hash(texts[i])
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.05, 1, keys-1)
	skewed := make([]uint64, keys)
	for i := range skewed {
		skewed[i] = zipf.Uint64()
	}
	for _, bench := range []struct {
		name string
		key  func(i int) uint64
		late time.Duration
		tops func([]Tops)
	}{
		{"zipf", func(i int) uint64 { return skewed[i%keys] }, 0, nil},
		{"zipf, tops", func(i int) uint64 { return skewed[i%keys] }, 0, func([]Tops) {}},
		{"distinct", func(i int) uint64 { return uint64(i) % keys }, 0, nil},
		{"distinct, tops", func(i int) uint64 { return uint64(i) % keys }, 0, func([]Tops) {}},
		{"one, late", func(int) uint64 { return 7 }, 8 * time.Second, nil},
	} {
		b.Run(bench.name, func(b *testing.B) {
			d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 1<<40, 10*time.Second)), Publisher: newRecorder(), Memory: 8 << 20, OnTops: bench.tops})
			now := noon
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if now = now.Add(time.Microsecond); i%1000 == 0 {
					d.Advance(now)
				}
				k := bench.key(i)
				when := now
				if i&1 == 1 {
					when = now.Add(-bench.late)
				}
				d.Count(decode.Count{Hash: hashes[k], Text: texts[k], N: 1, When: when})
			}
		})
	}
}
