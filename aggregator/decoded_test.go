package aggregator

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/aggregatortest"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// These tests cover the path from packets to hot keys: what decoders report that makes a key hot
// or bounds its counts.

// All spellings of a key count together and make it hot.
func TestSpellingsOfAKeyMakeItHot(t *testing.T) {
	rules := testRules(hotRule("terms", 100, time.Second))
	detector, d := NewDetector(DetectorConfig{Rules: rules, Publisher: newRecorder()}), decode.NewDecoder(rules, wire.Plain)
	d.Packet([]byte("shop.terms.hot_param.GET%20/s?a=1&b=2:50|c\nshop.terms.hot_param.GET%20/s?b=2&a=1:50|c"), noon, detector)
	if got := detector.Stats(); got.Hot != 1 || got.Keys != 1 {
		t.Errorf("%+v, want one key, hot", got)
	}
}

// A flood over the caps makes no key suspect or hot. So nothing is published, and instances are
// not asked for more detail.
func TestFloodOverCapsStirsNobody(t *testing.T) {
	out := newRecorder()
	rules := testRules(hotRule("terms", 100, time.Second))
	detector := NewDetector(DetectorConfig{Rules: rules, Publisher: out, Lag: decode.DefaultLag})
	d := decode.NewDecoder(rules, wire.Plain)
	d.Believe(&decode.Trust{Caps: decode.Caps{Counts: 90, Keys: 50, Names: 5, NewNames: 5}})
	d.SetPeer(func() netip.Addr { return netip.MustParseAddr("192.0.2.1") })
	for i := range 5_000 {
		now := noon.Add(time.Duration(i) * time.Millisecond)
		m := wire.Meta{Instance: fmt.Appendf(nil, "n%d", i), Incarnation: 1, Seq: uint64(i + 1), Start: now.UnixNano(), Held: 1 << 20, Unsent: 1 << 20}
		d.Packet(append(wire.AppendMeta(nil, m), "\nshop.terms.hot_param.q=innocent:200|c"...), now, detector)
		d.Packet(fmt.Appendf(nil, "shop.terms.hot_param.k%d:200|c", i%7), now, detector)
		d.Advance(now, detector)
		detector.AdvanceTo(now, now.Add(-decode.DefaultLag))
	}
	if len(out.changes) > 0 {
		t.Errorf("published %+v", out.changes[0])
	}
	if texts := suspectTexts(out); len(texts) > 0 || detector.Stats().Suspects > 0 {
		t.Errorf("suspects %q", texts)
	}
	if s := d.Stats(); s.Refused[decode.RefusedNames]+s.Refused[decode.RefusedCounts] != 10_000 {
		t.Errorf("refused %v", s.Refused)
	}
}

// Healed counts respect the bounds. A window that contains their whole time range counts them. A
// window that contains a part of it may lack them, or counts them and states that they may belong
// to a later window.
func TestHealedBounds(t *testing.T) {
	rule := hotRule("r", 1000, time.Second)
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: newRecorder(), Memory: 1 << 20})
	hash := rules.Hash([]byte("k"))
	d.Advance(noon)
	d.AddHealedCount(decode.Count{Hash: hash, Text: []byte("k"), N: 7, When: noon.Add(200 * time.Millisecond)}, noon.Add(400*time.Millisecond))
	d.RecordGap(decode.Gap{ID: 1, From: noon, To: noon.Add(300 * time.Millisecond), Loose: 20, Booked: 3})
	d.Advance(noon.Add(1500 * time.Millisecond))
	w := d.rules[0].views[0].Window
	bounds := func(end time.Duration) [2]int64 {
		low, high := w.Span(hash, []byte("k"), w.Index(noon.Add(end))-1, int64(w.Panes))
		return [2]int64{low, high}
	}
	check := func(want map[time.Duration][2]int64) {
		t.Helper()
		for end, want := range want {
			if got := bounds(end); got != want {
				t.Errorf("the window that ends at %v has %v, want %v", end, got, want)
			}
		}
	}
	check(map[time.Duration][2]int64{
		1000 * time.Millisecond: {7, 7 + 23}, 300 * time.Millisecond: {0, 7 + 23}, 1200 * time.Millisecond: {7, 7 + 23},
		1300 * time.Millisecond: {0, 7 + 23}, 1400 * time.Millisecond: {0, 7}, 1500 * time.Millisecond: {0, 0},
	})
	d.ExcludeFromGap(1, 0, hash, false)
	check(map[time.Duration][2]int64{1000 * time.Millisecond: {7, 7 + 3}})
	d.ExcludeFromGap(1, 0, hash, true)
	check(map[time.Duration][2]int64{1000 * time.Millisecond: {7, 7}})
	d.MoveHealedCount(decode.Count{Hash: hash, Text: []byte("k"), N: 2, When: noon.Add(400 * time.Millisecond)}, noon.Add(200*time.Millisecond), noon.Add(400*time.Millisecond))
	check(map[time.Duration][2]int64{1000 * time.Millisecond: {7, 7}, 1300 * time.Millisecond: {2, 7}, 300 * time.Millisecond: {0, 5}})
}

// A gap takes from a baseline the missing counts of the key's bucket, which differs from sender to
// sender. Gaps between the same statements share them and take them once. Other windows have no
// sums by bucket and lack the whole gap.
func TestABaselineLacksWhatItsBucketLacks(t *testing.T) {
	rule := hotRule("r", 1000, time.Second)
	rule.Hot[0].Kind, rule.Hot[0].Factor = rules.Jump, rules.NewFraction(4, 1)
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: newRecorder(), Memory: 1 << 20})
	text := []byte("GET /s?q=k")
	hash := rules.Hash(text)
	buckets := func(incarnation uint64, of int64) *decode.Joint {
		b := &decode.Joint{Incarnation: incarnation, Missing: make([]int64, wire.Buckets)}
		for i := range b.Missing {
			b.Missing[i] = 9
		}
		b.Missing[wire.BucketOf(wire.BucketHash(text), incarnation)] = of
		return b
	}
	gap := func(id uint64, n int64, of ...*decode.Joint) decode.Gap {
		g := decode.Gap{ID: id, From: noon, To: noon.Add(300 * time.Millisecond), Loose: n}
		copy(g.Buckets[:], of)
		return g
	}
	d.Advance(noon)
	d.RecordGap(gap(1, 20))
	d.Advance(noon.Add(time.Second))
	v := d.rules[0].views[0]
	once, again := buckets(8, 4), buckets(8, 5)
	for i, step := range []struct {
		gap            decode.Gap
		before, window int64 // missing counts of the baseline and of the window
	}{
		{gap(1, 20, buckets(5, 3)), 3, 20},
		{gap(1, 20, buckets(5, 2)), 2, 20},
		{gap(2, 30, buckets(6, 4)), 2 + 4, 50},
		{gap(3, 3, buckets(7, 4)), 2 + 4 + 3, 53}, // no more than all of it
		{gap(2, 0), 2 + 3, 23},
		{gap(4, 3, once), 2 + 3 + 3, 26},
		{gap(5, 10, once), 2 + 3 + 4, 36},        // together 4
		{gap(6, 20, once, again), 2 + 3 + 9, 56}, // and it reaches over the next statement
		{gap(7, 1, again), 2 + 3 + 9, 57},
		{gap(5, 10, buckets(8, 1)), 2 + 3 + 1 + 9, 57},
		{gap(4, 0), 2 + 3 + 1 + 9, 54},
		{gap(6, 0), 2 + 3 + 1 + 1, 34},
		{gap(7, 0), 2 + 3 + 1, 33},
	} {
		d.RecordGap(step.gap)
		_, before := v.history.Span(hash, text, v.history.Now(), 20)
		_, window := v.Window.Span(hash, text, v.Now(), int64(v.Panes))
		if before != step.before || window != step.window {
			t.Errorf("step %d: a baseline lacks %d and the window %d, want %d and %d", i, before, window, step.before, step.window)
		}
	}
}

// Packets that arrive after all place their counts at the packets' own times. This holds however
// long ago those times left the window, and whatever part of the counts was never placed.
func TestHealedCountsMoveBehindTheirWindow(t *testing.T) {
	text := []byte("k")
	hash, from, to := rules.Hash(text), noon.Add(200*time.Millisecond), noon.Add(9900*time.Millisecond)
	count := func(n int64, when time.Time) decode.Count {
		return decode.Count{Hash: hash, Text: text, N: n, When: when}
	}
	for name, c := range map[string]struct {
		placed, lacking int64 // counts placed in the window's time, and counts never placed
		packets         []int64
	}{
		"placed":                      {3, 0, []int64{3}},
		"lacking":                     {0, 3, []int64{3}},
		"in two packets":              {3, 0, []int64{1, 2}},
		"some of both":                {2, 3, []int64{2, 3}},
		"some of both, the other way": {2, 3, []int64{3, 2}},
		"all at once":                 {2, 3, []int64{5}},
	} {
		d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 1000, time.Second)), Publisher: newRecorder(), Memory: 1 << 20})
		d.Advance(noon.Add(300 * time.Millisecond))
		if c.placed > 0 {
			d.AddHealedCount(count(c.placed, from), to)
		}
		d.Advance(noon.Add(10 * time.Second))
		if c.lacking > 0 {
			d.AddHealedCount(count(c.lacking, from), to)
		}
		for _, n := range c.packets {
			d.MoveHealedCount(count(n, to), from, to)
		}
		w := d.rules[0].views[0].Window
		sum := c.placed + c.lacking
		if low, high := w.Span(hash, text, w.Index(noon.Add(10*time.Second))-1, int64(w.Panes)); low != sum || high != sum {
			t.Errorf("%s: the window has %d to %d, want %d", name, low, high, sum)
		}
	}
}

// Lost counts of one rule do not widen the bounds of another rule's keys.
func TestLossIsOfItsRule(t *testing.T) {
	ruleset := testRules(hotRule("a", 100, time.Second), hotRule("b", 100, time.Second))
	decoder := decode.NewDecoder(ruleset, wire.Plain)
	d := NewDetector(DetectorConfig{Rules: ruleset, Publisher: newRecorder()})
	d.Advance(noon)
	mark := wire.RulesMark(ruleset)
	byRule, sums := make([]uint64, 4), wire.Sums{Stated: true}
	seq := uint64(0)
	packet := func(at time.Duration, rule string, n uint64, lost, tells bool) {
		seq++
		m := wire.Meta{Instance: []byte("i"), Incarnation: 1, Seq: seq, Start: noon.Add(at).UnixNano(), Held: 1, Sums: sums}
		if tells {
			m.Rules = wire.AppendRuleSums(nil, mark, byRule)
		}
		line := wire.AppendKey([]byte("shop."+rule), wire.Plain, []byte("k"))
		bytes := append(append(wire.AppendMeta(nil, m), '\n'), line...)
		bytes = append(bytes, []byte(":"+string(rune('0'+n))+"|c")...)
		sums.Loose += n
		byRule[2*(rule[0]-'a')] += n
		if !lost {
			now := noon.Add(at + base.FlushInterval)
			d.Advance(now)
			decoder.Packet(bytes, now, d)
		}
	}
	high := func(rule int) int64 {
		v := d.rules[rule].views[0]
		_, high := v.Span(rules.Hash([]byte("k")), []byte("k"), v.Now(), int64(v.Panes))
		return high
	}
	packet(0, "a", 1, false, true)
	packet(0, "b", 2, false, false)
	packet(100*time.Millisecond, "b", 7, true, true)
	packet(100*time.Millisecond, "a", 3, false, false) // states no sums, so the seven lost counts may be of either rule
	if a, b := high(0), high(1); a != 4+7 || b != 2+7 {
		t.Errorf("high is %d and %d, want 11 and 9", a, b)
	}
	packet(200*time.Millisecond, "a", 1, false, true) // states its sums
	if a, b := high(0), high(1); a != 5 || b != 9 {
		t.Errorf("high is %d and %d, want 5 and 9", a, b)
	}
	packet(300*time.Millisecond, "a", 4, true, true)
	packet(400*time.Millisecond, "b", 1, false, true)
	if a, b := high(0), high(1); a != 9 || b != 10 {
		t.Errorf("high is %d and %d, want 9 and 10", a, b)
	}
	packet(500*time.Millisecond, "a", 3, true, true)
	packet(500*time.Millisecond, "a", 2, false, false)
	packet(500*time.Millisecond, "b", 5, true, false)
	packet(600*time.Millisecond, "a", 0, false, true)
	if a, b := high(0), high(1); a != 9+3+2 || b != 10+5 { // each gap lacks its rule's counts once
		t.Errorf("high is %d and %d, want 14 and 15", a, b)
	}
}

// A key that only all instances together make hot becomes hot and cools at the same times as with
// correct clocks.
func TestKeysAreHotAtTheSameTimeWhateverTheClocks(t *testing.T) {
	rules := testRules(hotRule("terms", 45, time.Second))
	out := newRecorder()
	d, detector := decode.NewDecoder(rules, wire.Plain), NewDetector(DetectorConfig{Rules: rules, Publisher: out, Memory: 1 << 20, Parts: 1})
	var all []*aggregatortest.Instance
	for name, ahead := range map[string]time.Duration{"right": 0, "slow": -4 * time.Second, "fast": 4 * time.Second, "an hour slow": -time.Hour, "an hour fast": time.Hour} {
		delay := aggregatortest.Always(3 * time.Millisecond)
		all = append(all, &aggregatortest.Instance{Name: "x " + name, Clock: aggregatortest.Always(ahead), Delay: delay}, &aggregatortest.Instance{Name: "y " + name, Clock: aggregatortest.Always(0), Delay: delay})
	}
	for _, p := range aggregatortest.Arrivals(40*time.Second, all...) {
		lines := ""
		if p.Start > 3*time.Second && p.Start < 6*time.Second {
			lines = "shop.terms.hot_param." + p.From.Name[:1] + ":1|c"
		}
		now := noon.Add(p.At)
		d.Record(&p.Meta, []byte(lines), now, true, detector)
		detector.Advance(now)
	}
	since, until := make(map[string]time.Time), make(map[string]time.Time)
	for _, c := range out.changes {
		for _, h := range c.Hot {
			since[h.Text] = h.Since
		}
		for _, h := range c.Cool {
			until[h.Text] = h.Until
		}
	}
	if len(since) != 2 || len(until) != 2 || since["x"].Sub(since["y"]).Abs() > decode.DefaultLag || until["x"].Sub(until["y"]).Abs() > decode.DefaultLag {
		t.Errorf("hot since %v, until %v", since, until)
	}
	if s := detector.Stats(); s.Late != 0 {
		t.Errorf("%d counts came too late", s.Late)
	}
	if off := d.Clocks(noon.Add(40 * time.Second)); len(off) != 4 {
		t.Errorf("told %v", off)
	}
}

// The earlier counts of an instance that is first heard in mid-stream are unknown. A window that
// may have held them has no known high count, and thresholds that compare keys are not passed
// before their totals were heard whole. An instance whose first packet arrived makes nothing
// unknown, and neither does one that has sent no counts before.
func TestInstancesThatAreHeardInMidStream(t *testing.T) {
	for _, test := range []struct {
		name    string
		seq     uint64
		sums    wire.Sums
		unknown bool
	}{
		{"the first packet", 1, wire.Sums{}, false},
		{"in mid-stream", 900, wire.Sums{}, true},
		{"in mid-stream, with sums", 900, wire.Sums{Stated: true, Loose: 5000}, true},
		{"in mid-stream, with held-back counts", 900, wire.Sums{Stated: true, HeldBack: 1}, true},
		{"in mid-stream, without counts", 900, wire.Sums{Stated: true}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			rule := hotRule("r", 10, 2*time.Second)
			share := rule.Hot[0]
			share.Kind, share.Factor = rules.Share, rules.Percent(50)
			jump := rule.Hot[0]
			jump.Kind, jump.Factor, jump.Rate.N = rules.Jump, rules.NewFraction(4, 1), 20
			rule.Hot[0].Rate.N = 1000
			rule.Hot = append(rule.Hot, share, jump)
			ruleset := testRules(rule)
			out := newRecorder()
			detector, d := NewDetector(DetectorConfig{Rules: ruleset, Publisher: out}), decode.NewDecoder(ruleset, wire.Plain)
			send := func(instance string, m wire.Meta, now time.Time, line string) {
				m.Instance, m.Start, m.Held = []byte(instance), now.UnixNano(), 1
				d.Packet(append(wire.AppendMeta(nil, m), "\n"+line...), now, detector)
				detector.Advance(now)
			}
			for i := range 300 { // an instance that is known whole, of 40 keys
				send("old", wire.Meta{Incarnation: 1, Seq: uint64(i + 1)}, noon.Add(time.Duration(i)*100*time.Millisecond), fmt.Sprintf("shop.r.hot_param.q=%d:1|c", i%40))
			}
			v := detector.rules[0].views[0]
			high := func() int64 {
				_, high := v.Window.Span(rules.Hash([]byte("q=k")), []byte("q=k"), v.closed, int64(v.Panes))
				return high
			}
			begin := noon.Add(30 * time.Second)
			for i := range 25 {
				now := begin.Add(time.Duration(i) * 100 * time.Millisecond)
				m := wire.Meta{Incarnation: 2, Seq: test.seq + uint64(i), Sums: test.sums}
				m.Sums.Loose += uint64(3 * i)
				send("new", m, now, "shop.r.hot_param.q=k:3|c")
				if i < 20 && i > 2 && test.unknown != (high() == published.Unknown) {
					t.Fatalf("%v after it was heard the high count is %d", now.Sub(begin), high())
				}
				if hot := len(out.hot()) > 0; hot && i < 18 && test.unknown {
					t.Fatalf("%v after it was heard a key is hot: %v", now.Sub(begin), out.hot())
				}
			}
			if n := high(); n == published.Unknown || len(out.hot()) == 0 {
				t.Errorf("high is %d when its window was heard whole, hot are %v", n, out.hot())
			}
		})
	}
}
