package aggregator

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
)

// The bounds of each reported instance contain its true count in the window, even if counts arrive
// late.
func TestOriginsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out := newRecorder()
		rule := hotRule("r", 10, time.Second)
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
		instances := rapid.SampledFrom([]int{1, 3, 20, 80}).Draw(t, "instances")
		var sent []struct {
			name string
			stamped
		}
		now := noon
		d.Advance(now)
		for range rapid.IntRange(1, 200).Draw(t, "counts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "ms")) * time.Millisecond)
			d.Advance(now)
			name, n := fmt.Sprint("i", rapid.IntRange(0, instances-1).Draw(t, "instance")), rapid.Int64Range(1, 9).Draw(t, "n")
			when := now.Add(-time.Duration(rapid.SampledFrom([]int{0, 0, 0, 30, 200}).Draw(t, "late")) * time.Millisecond)
			sent = append(sent, struct {
				name string
				stamped
			}{name, stamped{when, n}})
			d.Count(decode.Count{Hash: 1, Text: []byte("k"), N: n, When: when, Instance: name})
		}
		d.Refresh()
		if len(out.refresh) == 0 {
			return
		}
		top := out.refresh[0][0].Top
		if top == nil || len(top.Instances) == 0 || len(top.Instances) > published.MaxOrigins {
			t.Fatalf("told %+v", top)
		}
		w := rule.Hot[0].Window()
		for _, o := range top.Instances {
			var truth int64
			for _, s := range sent {
				if s.name == o.Name && w.Index(s.when) > w.Index(now)-int64(w.Panes) {
					truth += s.n
				}
			}
			if truth > o.Count || truth < o.Count-o.Over {
				t.Fatalf("%s sent %d, told %+v", o.Name, truth, o)
			}
		}
	})
}

// Counts from before the key was hot are attributed to their instance while they are in the
// window, to the end of its last pane.
func TestOriginsBeforeTheKeyWasHot(t *testing.T) {
	rule := hotRule("r", 10, time.Second)
	w := rule.Hot[0].Window()
	for _, hotAfter := range []time.Duration{0, 1, 50 * time.Millisecond, w.Pane - 1} {
		for _, panes := range []int{0, 1, w.Panes - 1, w.Panes} {
			out := newRecorder()
			d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
			count := func(n int64, when time.Time) {
				d.Advance(when)
				d.Count(decode.Count{Hash: 1, Text: []byte("k"), N: n, When: when, Instance: "a"})
			}
			count(8, noon)
			count(2, noon.Add(hotAfter))
			count(20, noon.Add(w.Pane*time.Duration(panes)+w.Pane/2))
			d.Refresh()
			o := out.refresh[0][0].Top.Instances[0]
			truth := int64(30)
			if panes == w.Panes {
				truth = 20
			}
			if truth > o.Count || truth < o.Count-o.Over {
				t.Errorf("hot after %v, %d panes later: sent %d, told %+v", hotAfter, panes, truth, o)
			}
		}
	}
}

// While nothing changed, the attribution has the same pointer, so that two published states of a
// key are equal.
func TestAttributionIsSharedWhileItIsTheSame(t *testing.T) {
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 10, time.Minute)), Publisher: out})
	d.Count(decode.Count{Hash: 1, Text: []byte("k"), N: 10, When: noon, Instance: "a"})
	d.Advance(noon)
	d.Refresh()
	d.Refresh()
	if first, second := out.refresh[0][0], out.refresh[1][0]; first != second || first.Top == nil {
		t.Errorf("told %+v, then %+v", first, second)
	}
	d.Count(decode.Count{Hash: 1, Text: []byte("k"), N: 10, When: noon, Instance: "b"})
	d.Refresh()
	if h := out.refresh[2][0]; len(h.Top.Instances) != 2 || len(out.refresh[0][0].Top.Instances) != 1 {
		t.Errorf("told %+v; what was told before must not change", h.Top)
	}
}
