package aggregator

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// The baseline of a jump is the mean of all ten windows before. Counts in the first of them weigh
// the same as counts in the last.
func TestJumpComparesWithTenWindows(t *testing.T) {
	for _, c := range []struct {
		second int // in which 29 came: a mean of 2.9, twelve times that is 34.8
		n      int64
		want   bool
	}{
		{0, 34, false}, {0, 35, true}, {5, 34, false}, {5, 35, true}, {9, 34, false},
		{-1, 30, true}, {-1, 29, false}, // eleven windows before: no baseline, the least count alone
	} {
		rule := hotRule("r", 30, time.Second)
		rule.Hot[0].Kind, rule.Hot[0].Factor = rules.Jump, rules.NewFraction(12, 1)
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
		for at := -20 * time.Second; at <= 10*time.Second; at += base.FlushInterval {
			now := noon.Add(at)
			d.Advance(now)
			n := int64(0)
			switch at {
			case time.Duration(c.second) * time.Second:
				n = 29
			case 10 * time.Second:
				n = c.n
			}
			if n > 0 {
				d.Count(decode.Count{Hash: 1, Text: []byte("GET /s?k=a"), N: n, When: now})
			}
		}
		if hot := len(out.hot()) == 1; hot != c.want {
			t.Errorf("29 in second %d, %d in second 10: hot is %v, want %v; %q", c.second, c.n, hot, c.want, out.events())
		}
	}
}
