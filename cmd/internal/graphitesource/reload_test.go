package graphitesource

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// After a change of the rules everything relevant is read again. A window is complete with the
// next poll, a hot key stays hot without a break, and its limit is the new one at once.
func TestReloadReadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := hotRule("gone", 1, 10*time.Second)
		w := newWorld(t, nil, hotRule("r", 100, 10*time.Second), gone)
		w.start()
		for range 15 {
			w.flush(map[string]float64{"q=a": 30, "q=b": 3})
		}
		w.polled()
		if h, _ := w.hot.get("q=a"); h.Low != 300 || h.High != 300 {
			t.Fatalf("q=a is %d to %d", h.Low, h.High)
		}
		changes := w.hot.changed()
		rule := hotRule("r", 40, 15*time.Second)
		rule.Limit = &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 3, Per: time.Second}, Burst: 3}, Mode: rules.ModeLimit}
		if err := w.source.Reload(rulesOf(rule, hotRule("new", 1, time.Minute))); err != nil {
			t.Fatal(err)
		}
		if h, hot := w.hot.get("q=a"); !hot || h.Limit.N != 3 || h.Low != 300 {
			t.Fatalf("at once it is %+v", h)
		}
		w.flush(map[string]float64{"q=a": 30, "q=b": 3})
		w.polled()
		if h, hot := w.hot.get("q=a"); !hot || h.Low != 450 || h.High != 450 || h.Cause.Rate.N != 40 {
			t.Errorf("with the next poll q=a is %+v, want 450 in 15 s", h)
		}
		if h, hot := w.hot.get("q=b"); !hot || h.Low != 45 || h.High != 45 {
			t.Errorf("with the next poll q=b is %+v, want 45 in 15 s", h)
		}
		if n := w.hot.changed() - changes; n > 3 {
			t.Errorf("%d changes, want the limit at once, and what is hot with the next poll", n)
		}
		if err := w.source.Reload(rulesOf(hotRule("other", 1, time.Second))); err != nil {
			t.Fatal(err)
		}
		if _, hot := w.hot.get("q=a"); hot {
			t.Error("hot, and its rule is gone")
		}
		odd := hotRule("odd", 1, 1500*time.Millisecond)
		if err := w.source.Reload(rulesOf(odd)); err == nil {
			t.Error("a window that is no whole number of steps is taken")
		}
	})
}
