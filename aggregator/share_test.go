package aggregator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
)

// A key whose text was cut tells no group: it may be of any, so it counts for the
// total of each that shares are of.
func TestSharesCountWhatHasNoGroup(t *testing.T) {
	for _, c := range []struct {
		strays int64
		want   bool
	}{{0, true}, {29, true}, {60, false}} {
		rule := hotRule("r", 1, time.Second)
		rule.Hot[0].Kind, rule.Hot[0].Factor = hotparam.Share, hotparam.Percent(25)
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
		d.Advance(noon)
		count := func(text []byte, n int64) {
			d.Count(Count{Hash: testHash(string(text)), Text: text, N: n, When: noon})
		}
		count([]byte("GET /s?k=a"), 30)
		for i := range 6 { // none has a quarter itself
			count(fmt.Appendf(nil, "GET /s?k=b%d", i), 10)
		}
		for i := range c.strays {
			long := fmt.Sprintf("GET /s?k=%d", i) + strings.Repeat("x", hotparam.MaxText)
			count(hotparam.Cut([]byte(long), hotparam.MaxText), 1)
		}
		d.Advance(noon.Add(hotparam.FlushEvery))
		_, hot := out.hot()[hotparam.Key{Rule: "r", Text: "GET /s?k=a"}]
		if hot != c.want {
			t.Errorf("30 of 90, and %d that may be of any group: hot is %v, want %v; %q", c.strays, hot, c.want, out.events())
		}
	}
}
