package collector

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/windowgen"
	"github.com/hotparam/hotparam/rules"
)

func anyWindow() *rapid.Generator[time.Duration] {
	return windowgen.Length(rules.MinWindow, rules.MaxWindow)
}

func anyTime(w rules.Window) *rapid.Generator[time.Time] { return windowgen.Time(w.Pane, w.Start) }

// The next cut is later than t, at a multiple of 100 ms or the start of a pane. There is no other
// cut in between.
func TestNextCutIsTheFirstEdgeAfterATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows := []rules.Window{rules.NewWindow(rules.MinWindow)}
		for _, d := range rapid.SliceOfN(anyWindow(), 0, 4).Draw(t, "windows") {
			windows = append(windows, rules.NewWindow(d))
		}
		at := anyTime(windows[len(windows)-1]).Draw(t, "t")
		cut := nextCut(at, windows[1:])
		if !cut.After(at) {
			t.Fatalf("the cut after %v is %v", at, cut)
		}
		edge := false
		for _, w := range windows {
			edge = edge || w.Start(w.Index(cut)).Equal(cut)
			if first := w.Start(w.Index(at) + 1); first.Before(cut) {
				t.Fatalf("between %v and the cut at %v a pane of %v begins at %v", at, cut, w.Pane, first)
			}
		}
		if !edge {
			t.Fatalf("nothing begins at the cut at %v", cut)
		}
	})
}

// The next cut has a monotonic reading, so that it can be waited for.
func TestNextCutKeepsTheMonotonicReading(t *testing.T) {
	now := time.Now()
	cut := nextCut(now, nil)
	if cut.Round(0) == cut { // == distinguishes them
		t.Error("the monotonic reading is gone")
	}
	if wait := cut.Sub(now); wait <= 0 || wait > base.FlushInterval {
		t.Errorf("the next cut is in %v", wait)
	}
}
