package rules

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/windowgen"
)

func TestWindowGolden(t *testing.T) {
	for d, want := range map[time.Duration]Window{
		time.Second:             {100 * time.Millisecond, 10},
		1050 * time.Millisecond: {100 * time.Millisecond, 10},
		6 * time.Second:         {100 * time.Millisecond, 60},
		10 * time.Second:        {166_666_666, 60},
		15 * time.Second:        {250 * time.Millisecond, 60},
		time.Minute:             {time.Second, 60},
		time.Hour:               {time.Minute, 60},
	} {
		if got := NewWindow(d); got != want {
			t.Errorf("NewWindow(%v) is %+v, want %+v", d, got, want)
		}
	}
}

func anyWindow() *rapid.Generator[time.Duration] { return windowgen.Length(MinWindow, MaxWindow) }

func anyTime(w Window) *rapid.Generator[time.Time] { return windowgen.Time(w.Pane, w.Start) }

// A window has 10 to 60 panes of max(100 ms, D/60) each. One more pane would make it longer than D.
func TestWindowIsNeverLongerThanAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyWindow().Draw(t, "d")
		w := NewWindow(d)
		if w.Pane != max(base.FlushInterval, d/60) || w.Panes < 10 || w.Panes > 60 {
			t.Fatalf("%v makes %+v", d, w)
		}
		if span := w.Pane * time.Duration(w.Panes); span > d || span+w.Pane <= d {
			t.Fatalf("%v makes %+v, which spans %v", d, w, span)
		}
	})
}

func TestIndexIsThePaneThatHoldsATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := NewWindow(anyWindow().Draw(t, "d"))
		at := anyTime(w).Draw(t, "t")
		i := w.Index(at)
		if at.Before(w.Start(i)) || !at.Before(w.Start(i+1)) {
			t.Fatalf("%v is not in pane %d of %+v", at, i, w)
		}
	})
}
