package aggregator

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// A detector closes no panes while counts are missing. After it continues, the windows that can no
// longer be judged cool nothing, and the windows that can be judged do.
func TestDetectorFreezesWhileCountsAreMissing(t *testing.T) {
	rule := hotRule("r", 20, time.Second)
	rule.Hot[0].Hold, rule.Hot[0].CoolDown = 0, 0
	for _, stall := range []time.Duration{6 * time.Second, 20 * time.Second, time.Hour} {
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
		end := noon.Add(stall)
		d.AdvanceTo(noon, noon)
		for at := noon; at.Before(end); at = at.Add(100 * time.Millisecond) {
			d.AdvanceTo(at, noon.Add(500*time.Millisecond))
			c := decode.Count{Hash: 1, Text: []byte("k"), N: 20, When: at}
			if end.Sub(at) < 5*time.Second {
				c = decode.Count{Hash: 2, Text: []byte("other"), N: 1, When: at}
			}
			d.Count(c)
		}
		if len(out.changes) != 1 {
			t.Fatalf("within a stall of %v: %+v, want the key hot and no more", stall, out.changes)
		}
		d.AdvanceTo(end, end)
		if len(out.changes) != 2 || len(out.changes[1].Cool) != 1 || out.changes[1].Cool[0].Until.Before(end.Add(-decode.DefaultGrace-100*time.Millisecond)) {
			t.Errorf("after a stall of %v: %+v, want the key cool by a window that is known", stall, out.changes)
		}
	}
}

// However far the clock moves at once, panes are closed with everything that their windows hold. A
// key cools when it would have cooled if the clock had moved step by step.
func TestDetectorCoolsInItsTimeWhenTheClockLeaps(t *testing.T) {
	rule := hotRule("r", 8, 15*time.Second)
	rule.Hot[0].Exit, rule.Hot[0].Hold, rule.Hot[0].CoolDown = rules.Percent(25), 0, 5*time.Second
	for leap := time.Second; leap < time.Hour; leap *= 2 {
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
		for _, c := range []struct {
			at time.Duration
			n  int64
		}{{0, 5}, {9 * time.Second, 6}, {19 * time.Second, 1}} {
			d.Advance(noon.Add(c.at))
			d.Count(decode.Count{Hash: 1, Text: []byte("k"), N: c.n, When: noon.Add(c.at)})
		}
		// The key is below the exit from 24.25 s on, when its six counts have left the window.
		cools := noon.Add(29*time.Second + 250*time.Millisecond)
		for at := 19*time.Second + leap; len(out.changes) < 2; at += leap {
			if d.Advance(noon.Add(at)); at > 3*time.Hour {
				t.Fatalf("leaps of %v: never cools", leap)
			}
		}
		if c := out.changes[1]; len(c.Cool) != 1 || !c.Cool[0].Until.Equal(cools) {
			t.Errorf("leaps of %v: %+v, want the key cool at %v", leap, c, cools)
		}
	}
}

// A window that ended before the one that made a key hot does not cool the key, however short the
// hold. This holds even if held-back counts make the newer window uncertain.
func TestDetectorDoesNotCoolByAWindowFromBefore(t *testing.T) {
	rule := hotRule("r", 200, time.Second)
	rule.Hot[0].Exit, rule.Hot[0].Hold, rule.Hot[0].CoolDown = rules.Percent(95), 0, 0
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Lag: decode.DefaultLag})
	d.Advance(noon)
	d.SetHeldBackBound(0, 80, 80) // of any key, half of it in a window that is not the newest
	for at := time.Duration(0); at < 1500*time.Millisecond; at += base.FlushInterval {
		now := noon.Add(at)
		d.Advance(now)
		if at == time.Second {
			d.Count(decode.Count{Hash: 1, Text: []byte("k"), N: 200, When: now})
		}
	}
	if len(out.changes) != 1 || len(out.changes[0].Hot) != 1 {
		t.Errorf("%q, want the key hot, and so for a second at least", out.events())
	}
}
