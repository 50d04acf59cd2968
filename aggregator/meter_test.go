package aggregator

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// However long a threshold's window is, the published rate of a hot key falls when the traffic
// stops.
func TestRateFallsWhenTrafficStops(t *testing.T) {
	for _, per := range []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour} {
		for _, lag := range []time.Duration{0, decode.DefaultLag} {
			t.Run(fmt.Sprint(per, lag), func(t *testing.T) {
				rule := hotRule("r", 100, per)
				out := newRecorder()
				d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Lag: lag})
				told := func(now time.Time) published.Hot {
					d.Advance(now)
					d.Refresh()
					for _, h := range out.refresh[len(out.refresh)-1] {
						return h
					}
					t.Fatal("the key is not hot")
					return published.Hot{}
				}
				now := noon
				for range 30 * 10 { // 200 a second
					d.Advance(now)
					d.Count(decode.Count{Hash: 1, Text: []byte("k"), N: 20, When: now})
					now = now.Add(100 * time.Millisecond)
				}
				if h := told(now); h.Rate != 200 {
					t.Errorf("while it lasts: %v/s, want 200", h.Rate)
				}
				if h := told(now.Add(time.Second)); h.Rate >= 100 {
					t.Errorf("a second after: %v/s, want it to have fallen below half", h.Rate)
				}
				h := told(now.Add(5 * time.Second))
				if h.Rate != 0 {
					t.Errorf("five seconds after: %v/s, want 0", h.Rate)
				}
				if want := published.CauseOf(&rule.Hot[0], rules.Requests); h.Cause != want {
					t.Errorf("cause %+v, want %+v", h.Cause, want)
				}
				if per >= time.Minute && h.Low != 6000 {
					t.Errorf("low %d: the count of its window is what it was", h.Low)
				}
			})
		}
	}
}

// A meter's rate is the rate of its counts, in whatever order they come.
func TestMeterIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := time.Duration(rapid.IntRange(1, 30).Draw(t, "span")) * 100 * time.Millisecond
		m := newMeter(span, noon)
		now, counts := noon, map[time.Time]int64{}
		for range rapid.IntRange(1, 60).Draw(t, "counts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "ms")) * time.Millisecond)
			when := now.Add(-time.Duration(rapid.IntRange(0, 1000).Draw(t, "late")) * time.Millisecond)
			n := rapid.Int64Range(1, 1e12).Draw(t, "n")
			m.add(when, n)
			counts[when] += n
			complete := now.Add(-time.Duration(rapid.IntRange(0, 1500).Draw(t, "lag")) * time.Millisecond)
			end := complete.Truncate(100 * time.Millisecond)
			want := int64(0)
			for at, n := range counts {
				if !at.Before(end.Add(-span)) && at.Before(end) {
					want += n
				}
			}
			got, ok := m.perSecond(complete)
			if whole := !end.Add(-span).Before(noon.Add(100 * time.Millisecond)); ok != whole {
				t.Fatalf("at %v: known %v, want %v", complete.Sub(noon), ok, whole)
			} else if ok && got != float64(want)/span.Seconds() {
				t.Fatalf("at %v: %v/s, want %d in %v", complete.Sub(noon), got, want, span)
			}
		}
	})
}

// The cause of a key that is hot by an exception is the exception's rate.
func TestCauseOfAnException(t *testing.T) {
	rule := hotRule("r", 10, time.Second)
	rule.By = rules.By{Kind: rules.ByEach}
	rule.Count = rules.Bytes
	rule.Hot = append(rule.Hot, rules.Threshold{Kind: rules.Share, Factor: rules.Percent(50), Rate: rules.Rate{N: 1000, Per: time.Second}, Exit: rules.Percent(80)})
	rule.Except = []rules.Exception{{Values: []rules.QueryMatch{{Name: "q", Value: "a"}}, Rate: rules.Rate{N: 30, Per: time.Second}}}
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
	for i, text := range []string{"GET /s?q=a", "GET /s?q=b"} {
		d.Count(decode.Count{Hash: uint64(i), Text: []byte(text), N: 50, When: noon})
	}
	for text, n := range map[string]int64{"GET /s?q=a": 30, "GET /s?q=b": 10} {
		want := published.Cause{Rate: rules.Rate{N: n, Per: time.Second}, Unit: rules.Bytes}
		if got := out.hot()[rules.Key{Rule: "r", Text: text}].Cause; got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// The replacement for a redacted value matches no pattern of the file.
func TestRedactedValuesMatchNoException(t *testing.T) {
	rule := hotRule("r", 10, time.Second)
	rule.By = rules.By{Kind: rules.ByEach}
	allow := func(name, value string) rules.Exception {
		return rules.Exception{Values: []rules.QueryMatch{{Name: name, Value: value}}, Action: rules.Allow}
	}
	rule.Except = []rules.Exception{allow("q", "*a*"), allow("b", "1")}
	ruleset := testRules(rule)
	ruleset.Redact.Names = []rules.Param{{Name: "q"}}
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: ruleset, Publisher: out})
	texts := []string{"GET /s?q=hmac-0eca1a85a9a4b838c518da1c55002e2f", "GET /s?b=1"}
	for i, text := range texts {
		d.Count(decode.Count{Hash: uint64(i), Text: []byte(text), N: 50, When: noon})
	}
	hot := out.hot()
	if _, found := hot[rules.Key{Rule: "r", Text: texts[0]}]; !found || len(hot) != 1 || len(rule.Except) != 2 {
		t.Errorf("hot are %v, want %s", hot, texts[0])
	}
}
