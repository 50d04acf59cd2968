package aggregator

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

func adopted(text string, since time.Time) published.Hot {
	return published.Hot{Key: rules.Key{Rule: "r", Text: text}, Since: since}
}

// An adopted key stays hot and is not published again while its counts continue. It cools on time
// when they stop.
func TestDetectorAdopts(t *testing.T) {
	for _, kind := range []rules.ThresholdKind{rules.FixedRate, rules.Share, rules.Jump, rules.Top} {
		rule := hotRule("r", 10, time.Second)
		th := rules.NewThreshold(rules.Rate{N: 10, Per: time.Second})
		th.Kind, th.Factor, th.Top = kind, rules.Percent(50), 1
		if kind == rules.Jump {
			th.Factor = rules.Percent(200)
		}
		rule.Hot = []rules.Threshold{th, rules.NewThreshold(rules.Rate{N: 600, Per: time.Minute})}
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
		if refused := d.Adopt([]published.Hot{adopted("k", noon.Add(-time.Hour)), {Key: rules.Key{Rule: "gone", Text: "k"}}}, noon); len(refused) != 1 || refused[0].Rule != "gone" {
			t.Fatalf("%v: refused %v, want the key of the rule that is not there", kind, refused)
		}
		d.RecordLoss(noon)
		at := time.Duration(0)
		for ; at < time.Minute; at += 100 * time.Millisecond {
			d.Advance(noon.Add(at))
			d.Count(decode.Count{Hash: rules.Hash([]byte("k")), Text: []byte("k"), N: 2, When: noon.Add(at)})
		}
		d.Refresh()
		if len(out.changes) > 0 || len(out.refreshed()) != 1 {
			t.Fatalf("%v: %+v while the counts go on, refreshed %v", kind, out.changes, out.refreshed())
		}
		for ; at < 5*time.Minute && len(out.changes) == 0; at += 100 * time.Millisecond {
			d.Advance(noon.Add(at))
		}
		if len(out.changes) != 1 || len(out.changes[0].Cool) != 1 || !out.changes[0].Cool[0].Since.Equal(noon.Add(-time.Hour)) {
			t.Fatalf("%v: %+v when the counts have ended, want the key cool", kind, out.changes)
		}
		if s := d.Stats(); s.Hot != 0 || d.rules[0].views[0].marked != 0 {
			t.Errorf("%v: %+v, %d marks left", kind, s, d.rules[0].views[0].marked)
		}
	}
}

// Adopted keys do not cool while the earlier counts of their window are unknown.
func TestDetectorDoesNotCoolWhatItAdoptedBeforeItKnows(t *testing.T) {
	rule := hotRule("r", 100, time.Minute)
	rule.Hot[0].Hold, rule.Hot[0].CoolDown = 0, 0
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
	d.Adopt([]published.Hot{adopted("k", noon.Add(-time.Hour))}, noon)
	d.RecordLoss(noon)
	for at := time.Duration(0); at < time.Minute; at += time.Second {
		if d.Advance(noon.Add(at)); len(out.changes) > 0 {
			t.Fatalf("%v after: %+v", at, out.changes)
		}
	}
	d.Advance(noon.Add(time.Minute + 2*time.Second))
	if len(out.changes) != 1 || len(out.changes[0].Cool) != 1 {
		t.Errorf("%+v when the window has passed, want the key cool", out.changes)
	}
}

func TestDetectorAdoptsWhatItHasFound(t *testing.T) {
	out := newRecorder()
	rule := hotRule("r", 5, time.Second)
	rule.Except = []rules.Exception{{Values: []rules.QueryMatch{{Name: "q", Value: "ok"}}, Action: rules.Allow}}
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
	d.Advance(noon)
	d.Count(decode.Count{Hash: rules.Hash([]byte("k")), Text: []byte("k"), N: 5, When: noon})
	refused := d.Adopt([]published.Hot{adopted("k", noon.Add(-time.Hour)), adopted("GET /s?q=ok", noon)}, noon)
	if len(refused) != 1 || refused[0].Text != "GET /s?q=ok" {
		t.Errorf("refused %v, want what is allowed", refused)
	}
	if d.Refresh(); len(out.refresh) != 1 || len(out.refresh[0]) != 1 || !out.refresh[0][0].Since.Equal(noon.Add(-time.Hour)) {
		t.Errorf("refreshed %+v, want the key once, since the hour before", out.refresh)
	}
}

// A key that was hot by one of two jumps over the same window is adopted by the jump over the same
// past.
func TestDetectorAdoptsByThePast(t *testing.T) {
	rule := overDays(50, time.Second, 4)
	rule.Hot = append(rule.Hot, rule.Hot[0])
	rule.Hot[0].Over = rules.OverRecent
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: newRecorder(), Start: noon})
	for i, over := range []rules.Over{rules.OverRecent, rules.OverDay} {
		h := adopted("k", noon)
		h.Cause = published.CauseOf(&rule.Hot[i], rule.Count)
		if held := d.watches[0].holders(&h); len(held) != 1 || held[0].Over != over {
			t.Errorf("a jump over %q is held by %d thresholds", over, len(held))
		}
		h.Cause, h.Also = published.CauseOf(&rule.Hot[1-i], rule.Count), d.watches[0].thresholds[i].holderName()
		if held := d.watches[0].holders(&h); len(held) != 2 {
			t.Errorf("by both it is held by %d thresholds", len(held))
		}
	}
}

// An adopted key is held by the thresholds that held it before. Another threshold with a long
// window does not hold it, since that window stays unknown for an hour.
func TestDetectorAdoptsByTheThresholdsThatHeld(t *testing.T) {
	for _, also := range []string{"", "rate/1h0m0s"} {
		rule := hotRule("r", 100, time.Second)
		rule.Hot = append(rule.Hot, rules.NewThreshold(rules.Rate{N: 10_000, Per: time.Hour}))
		rule.Hot[0].Hold, rule.Hot[0].CoolDown = 0, 0
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Start: noon})
		h := adopted("k", noon.Add(-time.Hour))
		h.Cause, h.Also, h.Ratio = published.CauseOf(&rule.Hot[0], rule.Count), also, 7
		d.Inherit([]published.Hot{h}, noon)
		if got := out.hot()[h.Key]; got.Ratio != 7 || got.High != published.Unknown || got.Also != also {
			t.Errorf("published is %+v, want the ratio and the thresholds of before, and no high count", got)
		}
		for at := time.Duration(0); at < 3*time.Second; at += 100 * time.Millisecond {
			d.Advance(noon.Add(at))
		}
		if got, want := len(out.hot()), len(also)/len("rate/1h0m0s"); got != want {
			t.Errorf("also held by %q: %d keys are hot after 3s, want %d", also, got, want)
		}
	}
}
