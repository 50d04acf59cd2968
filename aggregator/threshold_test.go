package aggregator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// scripted feeds a detector of one rule the counts of certain times, pane by pane and without a
// lag.
type scripted struct {
	*Detector
	out *recorder
}

func newScripted(th rules.Threshold, except ...rules.Exception) *scripted {
	rule := hotRule("r", 1, time.Second)
	rule.Hot, rule.Except = []rules.Threshold{th}, except
	out := newRecorder()
	return &scripted{NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out}), out}
}

// run moves the clock from one time to another, pane by pane, and calls each after each step.
func (s *scripted) run(from, to time.Duration, each func(at time.Duration)) {
	for at := from; at <= to; at += base.FlushInterval {
		s.Advance(noon.Add(at))
		each(at)
	}
}

func (s *scripted) count(key string, n int64, at time.Duration) {
	text := "GET /s?k=" + key
	s.Count(decode.Count{Hash: testHash(text), Text: []byte(text), N: n, When: noon.Add(at)})
}

// hotKeys returns the hot keys, sorted.
func (s *scripted) hotKeys() string {
	var keys []string
	for k := range s.out.hot() {
		keys = append(keys, k.Text[len("GET /s?k="):])
	}
	slices.Sort(keys)
	return fmt.Sprint(keys)
}

func thresholdOf(kind rules.ThresholdKind, n int64) rules.Threshold {
	return rules.Threshold{Kind: kind, Rate: rules.Rate{N: n, Per: time.Second}, Exit: rules.Percent(80)}
}

// A key becomes hot with exactly the needed count, and not with one less.
func TestEnterIsExact(t *testing.T) {
	share, top := thresholdOf(rules.Share, 1), thresholdOf(rules.Top, 5)
	share.Factor, top.Top = rules.Percent(25), 2
	adjust := rules.Exception{Values: []rules.QueryMatch{{Name: "k", Value: "x"}}, Rate: rules.Rate{N: 20, Per: time.Second}}
	allow := rules.Exception{Values: []rules.QueryMatch{{Name: "k", Value: "x"}}, Action: rules.Allow}
	for _, c := range []struct {
		name   string
		th     rules.Threshold
		except []rules.Exception
		counts map[string]int64
		want   string
	}{
		{"the threshold", thresholdOf(rules.FixedRate, 10), nil, map[string]int64{"a": 10, "b": 9}, "[a]"},
		{"an exception's", thresholdOf(rules.FixedRate, 10), []rules.Exception{adjust}, map[string]int64{"x": 19, "b": 10}, "[b]"},
		{"an exception's, reached", thresholdOf(rules.FixedRate, 10), []rules.Exception{adjust}, map[string]int64{"x": 20}, "[x]"},
		{"allowed", thresholdOf(rules.FixedRate, 10), []rules.Exception{allow}, map[string]int64{"x": 1000}, "[]"},
		{"a share", share, nil, map[string]int64{"a": 25, "b": 24, "c": 24, "d": 24, "e": 3}, "[a]"},
		{"less than a share", share, nil, map[string]int64{"a": 25, "b": 24, "c": 24, "d": 24, "e": 4}, "[]"},
		{"the top two", top, nil, map[string]int64{"a": 30, "b": 21, "c": 20}, "[a b]"},
		{"a tie for the second place", top, nil, map[string]int64{"a": 30, "b": 20, "c": 20}, "[a]"},
		{"a tie for the first place", top, nil, map[string]int64{"a": 30, "b": 30, "c": 20}, "[a b]"},
		{"a tie of three", top, nil, map[string]int64{"a": 30, "b": 30, "c": 30}, "[]"},
		{"below the least count", top, nil, map[string]int64{"a": 5, "b": 4}, "[a]"},
	} {
		s := newScripted(c.th, c.except...)
		s.run(0, 200*time.Millisecond, func(at time.Duration) {
			for key, n := range c.counts {
				if at == 0 {
					s.count(key, n, at)
				}
			}
		})
		if got := s.hotKeys(); got != c.want {
			t.Errorf("%s: of %v hot are %s, want %s", c.name, c.counts, got, c.want)
		}
	}
}

// Ranks compare a key with all keys in the window, including keys that have left later windows,
// since a pane is judged after late counts have arrived.
func TestRankingHasKeysThatHaveLeft(t *testing.T) {
	th := thresholdOf(rules.Top, 2)
	th.Top = 1
	rule := hotRule("r", 1, time.Second)
	rule.Hot = []rules.Threshold{th}
	out := newRecorder()
	s := &scripted{NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Lag: 250 * time.Millisecond, Grace: 2 * time.Second}), out}
	s.run(0, 4*time.Second, func(at time.Duration) {
		switch at {
		case 500 * time.Millisecond:
			s.count("a", 2, at)
			s.count("b", 1, at)
		case 0, time.Second:
			s.count("b", 1, at)
		}
		s.Refresh()
	})
	if events := out.events(); len(events) > 0 {
		t.Errorf("a tie of two, until both have left: %v", events)
	}
}

// A rival whose low count is below the least one may still have as many counts as the key, because
// some of its counts were missing and may be older than the window.
func TestRankingHasKeysOfUncertainCounts(t *testing.T) {
	th := thresholdOf(rules.Top, 3)
	th.Top = 1
	rule := hotRule("r", 1, time.Second)
	rule.Hot = []rules.Threshold{th}
	out := newRecorder()
	s := &scripted{NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Lag: 250 * time.Millisecond, Grace: 2 * time.Second}), out}
	s.run(0, 5*time.Second, func(at time.Duration) {
		switch at {
		case 1500 * time.Millisecond:
			text := "GET /s?k=b"
			s.AddHealedCount(decode.Count{Hash: testHash(text), Text: []byte(text), N: 1, When: noon.Add(900 * time.Millisecond)}, noon.Add(1100*time.Millisecond))
			s.count("b", 2, at)
			s.count("a", 3, at)
		case 2 * time.Second:
			s.count("b", 1, at)
		}
	})
	if events := out.events(); len(events) > 0 {
		t.Errorf("a tie of two in each window, as far as is known: %v", events)
	}
}

// A key that a late count makes hot is hot since the window that contains the count, however much
// earlier that count belongs.
func TestLateCountDoesNotDateAKeyBack(t *testing.T) {
	th := thresholdOf(rules.Jump, 5)
	th.Factor = rules.Percent(200)
	rule := hotRule("r", 1, time.Second)
	rule.Hot = []rules.Threshold{th}
	out := newRecorder()
	s := &scripted{NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Grace: 4 * time.Second}), out}
	s.run(0, 20*time.Second, func(at time.Duration) {
		switch at {
		case 15 * time.Second:
			s.SetHeldBackBound(0, 10, 0)
			s.RecordLoss(noon.Add(at)) // so no baseline is known
		case 16 * time.Second:
			s.count("a", 5, at)
		case 16500 * time.Millisecond:
			s.ReduceLoss(time.Time{})
			s.count("a", 1, 13*time.Second)
		}
	})
	for _, c := range out.changes {
		for _, h := range c.Hot {
			if since := h.Since.Sub(noon); since < 16*time.Second {
				t.Errorf("hot since %v, want 16s at the earliest", since)
			}
		}
	}
	if len(out.changes) == 0 {
		t.Error("nothing is hot")
	}
}

// A key stays hot with the exit's count, and cools with one less.
func TestExitIsExact(t *testing.T) {
	for _, c := range []struct {
		n    int64 // counts in each second after the first, which has ten
		want string
	}{{8, "[a]"}, {7, "[]"}} {
		s := newScripted(thresholdOf(rules.FixedRate, 10))
		s.run(0, 8*time.Second, func(at time.Duration) {
			switch {
			case at == 0:
				s.count("a", 10, at)
			case at%time.Second == 0: // so each window holds one of them
				s.count("a", c.n, at)
			}
		})
		if got := s.hotKeys(); got != c.want {
			t.Errorf("with %d in each window hot are %s, want %s", c.n, got, c.want)
		}
	}
}

// A key cools with the first window that ends after the hold and completes a cool-down of windows
// below the exit.
func TestCoolingIsExact(t *testing.T) {
	for _, c := range []struct{ hold, coolDown, want time.Duration }{
		{0, 0, 1100 * time.Millisecond}, // the first window without the counts
		{0, 2 * time.Second, 3100 * time.Millisecond},
		{5 * time.Second, 0, 5 * time.Second},
		{5 * time.Second, 2 * time.Second, 5 * time.Second},
		{2 * time.Second, 5 * time.Second, 6100 * time.Millisecond},
	} {
		th := thresholdOf(rules.FixedRate, 10)
		th.Hold, th.CoolDown = c.hold, c.coolDown
		s := newScripted(th)
		s.run(0, 10*time.Second, func(at time.Duration) {
			if at == 0 {
				s.count("a", 10, at)
			}
		})
		if got := s.out.changes; len(got) != 2 || len(got[1].Cool) != 1 {
			t.Errorf("hold %v, cool-down %v: %q, want hot, then cool", c.hold, c.coolDown, s.out.events())
		} else if cooled := got[1].Cool[0].Until.Sub(noon); cooled != c.want {
			t.Errorf("hold %v, cool-down %v: cool at %v, want %v", c.hold, c.coolDown, cooled, c.want)
		}
	}
}

// The baseline of a jump consists of the windows before the present one.
func TestJumpLeavesOutThePresentWindow(t *testing.T) {
	for _, c := range []struct {
		n    int64 // in addition to nine in the panes before
		want string
	}{{11, "[a]"}, {10, "[]"}} {
		th := thresholdOf(rules.Jump, 1)
		th.Factor = rules.NewFraction(2, 1)
		s := newScripted(th)
		s.run(-10*time.Second, 15*time.Second, func(at time.Duration) {
			switch {
			case at < 0:
			case at == 15*time.Second:
				s.count("a", c.n, at)
			default:
				s.count("a", 1, at) // ten in each window
			}
		})
		hot := s.hotKeys()
		if at15 := s.out.changes[len(s.out.changes)-1]; (len(at15.Hot) == 1 && at15.Hot[0].Since.Equal(noon.Add(15*time.Second))) != (c.want == "[a]") || hot != c.want {
			t.Errorf("%d in the window, ten in those before: hot are %s, want %s: %q", 9+c.n, hot, c.want, s.out.events())
		}
	}
}

// The exit is a fraction of whatever a key is compared with, as the file states it. It is not
// rounded to a multiple of 1/min.
func TestExitIsAPartOfWhatIsNeeded(t *testing.T) {
	const group, others = "GET /s?q=", 900
	for least := int64(1); least <= 20; least++ {
		for percent := int64(1); percent <= 100; percent++ {
			share := hotRule("share", least, time.Second)
			share.Hot[0].Kind, share.Hot[0].Factor, share.Hot[0].Exit = rules.Share, rules.Percent(10), rules.Percent(percent)
			top := hotRule("top", least, time.Second)
			top.Hot[0].Kind, top.Hot[0].Top, top.Hot[0].Exit = rules.Top, 1, rules.Percent(percent)
			except := hotRule("except", least, time.Second)
			except.Hot[0].Exit = rules.Percent(percent)
			except.Except = []rules.Exception{{Values: []rules.QueryMatch{{Name: "q", Value: "a"}}, Rate: rules.Rate{N: 1000, Per: time.Second}}}
			d := NewDetector(DetectorConfig{Rules: testRules(share, top, except), Publisher: newRecorder()})
			for rule := range 3 {
				for i, n := range []int64{100, others} {
					d.Count(decode.Count{Rule: rule, Hash: uint64(i), Text: fmt.Appendf(nil, "%s%c", group, 'a'+i), N: n, When: noon})
				}
			}
			for rule, compared := range []int64{(100 + others) / 10, others, 1000} {
				r := d.rules[rule]
				x := r.thresholds[0]
				pane, text := x.view.Index(noon), []byte(group+"a")
				if x.Kind == rules.Top {
					x.newest = x.rank(pane)
				}
				want := max(1, (compared*percent+99)/100)
				if got := x.needs(r.rule.Exception(string(text)), x.view.Find(0, text), text, pane).exit; got != max(want, x.ExitCount(least)) && rule < 2 || got != want && rule == 2 {
					t.Fatalf("%s, min %d, exit %d%%: cool below %d, want %d", r.rule.ID, least, percent, got, want)
				}
			}
		}
	}
}

// A share of bytes is known however many there are. Panes of an hour once could not hold a route's
// total at 71 MB/s, and no key ever became hot.
func TestShareOfManyBytes(t *testing.T) {
	rule := hotRule("r", 1e6, time.Hour)
	rule.Count = rules.Bytes
	rule.Hot[0].Kind, rule.Hot[0].Factor = rules.Share, rules.Percent(40)
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
	d.Advance(noon)
	for i, text := range []string{"GET /s?q=a", "GET /s?q=b", "GET /s?q=c"} {
		d.Count(decode.Count{Hash: uint64(i), Text: []byte(text), N: []int64{4e9, 3e9, 1e9}[i], When: noon})
	}
	d.Advance(noon.Add(2 * time.Minute))
	h, hot := out.hot()[rules.Key{Rule: "r", Text: "GET /s?q=a"}]
	if !hot || h.Low != 4e9 || h.High != 4e9 || h.Ratio != 1.25 || len(out.hot()) != 1 {
		t.Errorf("hot: %+v, want the one that has half of the bytes", out.hot())
	}
}
