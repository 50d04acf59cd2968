package graphitesource

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// However many keys are hot, the number of keys requested by name is bounded. Keys that pass the
// filter are not requested by name.
func TestNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := hotRule("r", 100, 10*time.Second)
		rule.Hot[0].Hold = time.Minute
		w := newWorld(t, nil, rule)
		w.start()
		burst := make(map[string]float64)
		for i := range 2 * maxNamed {
			burst[fmt.Sprintf("q=%03d", i)] = 100
		}
		w.flush(burst)
		w.polled()
		w.flush(nil)
		w.polled()
		if n := len(w.graphite.asked()); n != 2 {
			t.Errorf("asked for %q", w.graphite.asked())
		}
		for range 30 {
			w.flush(map[string]float64{"q=000": 100})
		}
		w.polled()
		named := w.graphite.asked()[2]
		if n := strings.Count(named, ",") + 1; n != maxNamed || !strings.HasPrefix(named, "stats_counts.shop.r.hot_param.{q=001,q=002,") {
			t.Errorf("asked for %d: %s", n, named)
		}
	})
}

// Traffic that keeps a key at its exit exceeds the filter in at least one second.
func TestFilterMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Step: time.Duration(rapid.SampledFrom([]int{1, 5, 10}).Draw(t, "step")) * time.Second}
		steps := rapid.IntRange(1, int(maxFiltered/c.Step)).Draw(t, "steps")
		rule := hotRule("r", rapid.Int64Range(1, 1000).Draw(t, "n"), time.Duration(steps)*c.Step)
		th := &rule.Hot[0]
		exit := rapid.Int64Range(1, th.Rate.N).Draw(t, "exit")
		th.Exit = rules.NewFraction(exit, th.Rate.N)
		if rapid.Bool().Draw(t, "except") {
			own := rules.Rate{N: rapid.Int64Range(1, 2000).Draw(t, "own"), Per: th.Rate.Per}
			rule.Except = []rules.Exception{{Rate: own}}
			exit = min(exit, max(1, (own.N*exit+th.Rate.N-1)/th.Rate.N))
		}
		above := c.filter(&rule)
		// The most even traffic that is at the exit.
		highest := int64(math.Ceil(float64(exit) / float64(steps)))
		if highest <= above {
			t.Fatalf("%d in %d points, not one above %d", exit, steps, above)
		}
		if above < highest-1 {
			t.Errorf("above %d, though %d points need %d for %d", above, steps, highest, exit)
		}
	})
	for name, change := range map[string]func(*rules.Threshold){
		"share":    func(th *rules.Threshold) { th.Kind = rules.Share },
		"jump":     func(th *rules.Threshold) { th.Kind = rules.Jump },
		"too long": func(th *rules.Threshold) { th.Rate.Per = maxFiltered + time.Second },
	} {
		rule := hotRule("r", 1000, time.Minute)
		change(&rule.Hot[0])
		if above := (&Config{Step: time.Second}).filter(&rule); above != 0 {
			t.Errorf("%s: above %d, want every count", name, above)
		}
	}
}

// A key that appears late is read as far back as its own rule's window, not another's.
func TestWindowsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, hotRule("r", 10, time.Second), hotRule("s", 600, time.Minute))
		w.start()
		for range 40 {
			w.flush(map[string]float64{"q=a": 5})
		}
		w.flush(map[string]float64{"q=a": 10})
		w.polled()
		if _, hot := w.hot.get("q=a"); !hot {
			t.Error("10 in a second are not hot")
		}
		if s := w.source.Stats(); s.Counted != 10+11*5 || s.Detector.Late != 0 {
			t.Errorf("counted %d, %d too late", s.Counted, s.Detector.Late)
		}
	})
}

// A key that is hot by two rules, each with its own prefix, is a key of each rule.
func TestRulesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := hotRule("s", 10, time.Second)
		second.Prefix = "own.words"
		w := newWorld(t, nil, hotRule("r", 100, 10*time.Second), second)
		w.start()
		at := w.tick()
		w.graphite.write(w.series("q=a"), at, 200)
		for name, n := range map[string]float64{
			"stats_counts.own.words.hot_param.q=b":     10,
			"stats_counts.own.words.hot_param.q=_":     10,
			"stats_counts.own.words.hot_param.q=c":     -5,
			"stats_counts.own.words.hot_param.q=d":     math.MaxFloat64,
			"stats_counts.other.rule.hot_param.q=e":    10,
			"stats_counts.own.words.hot_param.q=e.f":   10,
			"stats_counts.own.words.other_param.q=e":   10,
			"stats_counts.own.words.hot_param.q_3D_C3": 10,
		} {
			w.graphite.write(name, at, n)
		}
		w.beat(at)
		w.polled()
		got := slices.Sorted(maps.Keys(w.hot.hot))
		if want := []string{"q=a", "q=b", "q=\xc3"}; !slices.Equal(got, want) {
			t.Errorf("hot %q, want %q", got, want)
		}
		if h, _ := w.hot.get("q=b"); h.Rule != "s" {
			t.Errorf("%+v", h)
		}
		if s := w.source.Stats(); s.BadKey != 1 || s.BadValue != 1 || s.Counted != 220 {
			t.Errorf("stats %+v", s)
		}
	})
}
