package aggregator

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
)

// The exit is the part that the file says of whatever a key is compared with: it is not
// rounded to a multiple of 1/min.
func TestExitIsAPartOfWhatIsNeeded(t *testing.T) {
	const group, others = "GET /s?q=", 900
	for least := int64(1); least <= 20; least++ {
		for percent := int64(1); percent <= 100; percent++ {
			share := hotRule("share", least, time.Second)
			share.Hot[0].Kind, share.Hot[0].Factor, share.Hot[0].Exit = hotparam.Share, hotparam.Percent(10), hotparam.Percent(percent)
			top := hotRule("top", least, time.Second)
			top.Hot[0].Kind, top.Hot[0].Top, top.Hot[0].Exit = hotparam.Top, 1, hotparam.Percent(percent)
			except := hotRule("except", least, time.Second)
			except.Hot[0].Exit = hotparam.Percent(percent)
			except.Except = []hotparam.Exception{{Values: []hotparam.QueryMatch{{Name: "q", Value: "a"}}, Rate: hotparam.Rate{N: 1000, Per: time.Second}}}
			d := NewDetector(DetectorConfig{Rules: testRules(share, top, except), Publisher: newRecorder()})
			for rule := range 3 {
				for i, n := range []int64{100, others} {
					d.Count(Count{Rule: rule, Hash: uint64(i), Text: fmt.Appendf(nil, "%s%c", group, 'a'+i), N: n, When: noon})
				}
			}
			for rule, compared := range []int64{(100 + others) / 10, others, 1000} {
				r := d.rules[rule]
				x := r.thresholds[0]
				pane, text := x.view.Index(noon), []byte(group+"a")
				if x.Kind == hotparam.Top {
					x.rank(pane)
				}
				want := max(1, (compared*percent+99)/100)
				if got := x.needs(r.rule.Exception(string(text)), x.view.find(0, text), text, pane).exit; got != max(want, x.ExitCount(least)) && rule < 2 || got != want && rule == 2 {
					t.Fatalf("%s, min %d, exit %d%%: cool below %d, want %d", r.rule.ID, least, percent, got, want)
				}
			}
		}
	}
}

// A share of bytes is known however many there are: in the panes of an hour the total of
// a route was more than a pane could hold at 71 MB/s, and no key was ever hot.
func TestShareOfManyBytes(t *testing.T) {
	rule := hotRule("r", 1e6, time.Hour)
	rule.Count = hotparam.Bytes
	rule.Hot[0].Kind, rule.Hot[0].Factor = hotparam.Share, hotparam.Percent(40)
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
	d.Advance(noon)
	for i, text := range []string{"GET /s?q=a", "GET /s?q=b", "GET /s?q=c"} {
		d.Count(Count{Hash: uint64(i), Text: []byte(text), N: []int64{4e9, 3e9, 1e9}[i], When: noon})
	}
	d.Advance(noon.Add(2 * time.Minute))
	h, hot := out.hot()[hotparam.Key{Rule: "r", Text: "GET /s?q=a"}]
	if !hot || h.Low != 4e9 || h.High != 4e9 || h.Ratio != 1.25 || len(out.hot()) != 1 {
		t.Errorf("hot: %+v, want the one that has half of the bytes", out.hot())
	}
}
