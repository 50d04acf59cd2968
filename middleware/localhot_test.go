package middleware

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// alone is one instance with a real collector that runs, on a clock that the test controls.
type alone struct {
	*fixture
	key rules.Key
}

func runAlone(t *testing.T, opts []Option, test func(t *testing.T, a *alone)) {
	t.Helper()
	runRule(t, hotRule(t, "r", "GET /s", byNames("q"), 60, 10), opts, test)
}

// runRule is runAlone for this rule of keys by q.
func runRule(t *testing.T, rule rules.Rule, opts []Option, test func(t *testing.T, a *alone)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ruleset := rules.Rules{Namespace: "test", Rules: []rules.Rule{rule}}
		ruleset.Rules[0].Hot[0].Hold = 5 * time.Second
		opts = append(opts, WithClock(func() time.Duration { return time.Since(start) }))
		a := &alone{newFixtureOf(t, ruleset, collector.Config{Rules: &ruleset}, opts...), rules.Key{Rule: "r", Text: "GET /s?q=1"}}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.counts.Run(ctx) }()
		test(t, a)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// burst sends 100 requests at once, the threshold, and returns how many pass.
func (a *alone) burst() int { return a.load(100, 0) }

// load sends requests for the key, evenly spread over some time, and returns how many passed.
func (a *alone) load(n int, over time.Duration) (passed int) {
	for range n {
		if a.Check(search).Allowed {
			passed++
		}
		if over > 0 {
			time.Sleep(over / time.Duration(n))
		}
	}
	if over == 0 {
		time.Sleep(base.FlushInterval + 10*time.Millisecond) // mostly an urgent flush, after 5 ms, does it
	}
	return passed
}

func (a *alone) state() string {
	synctest.Wait()
	hot := a.HotKeys()
	switch {
	case len(hot) == 0:
		return "cool"
	case hot[0].Local:
		return "local"
	}
	return "hot"
}

func (a *alone) want(t *testing.T, state string) {
	t.Helper()
	if got := a.state(); got != state {
		t.Errorf("the key is %s, want %s", got, state)
	}
}

func (a *alone) publish(hot ...published.Hot) { replaceHot(a.hot, "v", hot) }

func (a *alone) fleet(instances int) { a.HotSet().UpdateFleet(published.Fleet{Instances: instances}) }

// With no aggregator in sight a key that is hot here is limited here, at the next flush at the
// latest, until it cools here.
func TestLocalFirst(t *testing.T) {
	runAlone(t, nil, func(t *testing.T, a *alone) {
		if n := a.burst(); n != 100 {
			t.Errorf("%d passed before it was hot", n)
		}
		a.want(t, "local")
		if n := a.burst(); n != 10 {
			t.Errorf("%d passed, want the burst of 10", n)
		}
		h := a.HotKeys()[0]
		if h.Key != a.key || h.Limit != (rules.Rate{N: 60, Per: time.Hour}) || h.Low < 100 || h.Passed != 10 || h.Refused != 90 {
			t.Errorf("%+v", h)
		}
		a.load(2000, 10*time.Second) // the load lasts
		a.want(t, "local")
		time.Sleep(10 * time.Second)
		a.want(t, "cool")
		if n := a.burst(); n != 100 {
			t.Errorf("%d passed once it had cooled", n)
		}
		a.want(t, "local")
		if n := a.burst(); n != 0 {
			t.Errorf("a flap grants %d", n)
		}
		if s := a.Stats(); s.Local != 2 || s.Refuted != 0 || s.Unmarked != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A published key replaces a local mark, with the same bucket, and stays hot after it has cooled
// here.
func TestLocalIsAgreedTo(t *testing.T) {
	runAlone(t, nil, func(t *testing.T, a *alone) {
		a.fleet(3)
		a.burst()
		a.burst()
		a.want(t, "local")
		time.Sleep(time.Second)
		a.publish(published.Hot{Key: a.key, Low: 500})
		a.want(t, "hot")
		if n := a.burst(); n != 0 {
			t.Errorf("what is published grants a fresh burst of %d", n)
		}
		time.Sleep(30 * time.Second) // it has cooled here, by far
		a.want(t, "hot")
		a.publish()
		a.want(t, "cool")
		if s := a.Stats(); s.Local != 1 || s.Refuted != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// An aggregator that responds and does not confirm the key in two seconds refutes it, until the
// key has cooled here and become hot again.
func TestLocalIsRefuted(t *testing.T) {
	runAlone(t, nil, func(t *testing.T, a *alone) {
		a.fleet(3)
		a.burst()
		a.load(80, 1600*time.Millisecond)
		a.want(t, "local")
		a.load(20, 400*time.Millisecond)
		a.want(t, "cool")
		if n := a.load(1000, 5*time.Second); n != 1000 {
			t.Errorf("%d passed after it was refuted, want all", n)
		}
		a.want(t, "cool")
		if s := a.Stats(); s.Local != 1 || s.Refuted != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(20 * time.Second)
		a.burst()
		a.want(t, "local")
		if s := a.Stats(); s.Local != 2 || s.Refuted != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A restarted aggregator has two seconds from then on. So has one that has released a key which is
// still hot here.
func TestLocalWhileTheAggregatorComesAndGoes(t *testing.T) {
	runAlone(t, nil, func(t *testing.T, a *alone) {
		a.burst()
		a.load(1000, 5*time.Second)
		a.want(t, "local")
		a.fleet(1)
		a.load(380, 1900*time.Millisecond)
		a.want(t, "local")
		a.fleet(0) // gone again
		a.load(1000, 5*time.Second)
		a.want(t, "local")
		a.fleet(1)
		a.load(200, time.Second)
		a.publish(published.Hot{Key: a.key})
		a.load(600, 3*time.Second)
		a.want(t, "hot")
		a.publish()
		a.want(t, "local")
		a.load(380, 1900*time.Millisecond)
		a.want(t, "local")
		a.load(40, 200*time.Millisecond)
		a.want(t, "cool")
	})
}

func TestWithoutLocal(t *testing.T) {
	runAlone(t, []Option{WithoutLocal()}, func(t *testing.T, a *alone) {
		a.burst()
		a.want(t, "cool")
		if n := a.burst(); n != 100 {
			t.Errorf("%d passed", n)
		}
	})
}

// The collector is steered by published keys, not by marks.
func TestSteers(t *testing.T) {
	var swaps [][]string
	opt := WithOnSwap(func(_ string, hot []HotKey) {
		var keys []string
		for _, h := range hot {
			keys = append(keys, h.Key.String())
		}
		slices.Sort(keys)
		swaps = append(swaps, keys)
	})
	runAlone(t, []Option{opt}, func(t *testing.T, a *alone) {
		a.fleet(2)
		a.burst()
		a.publish(published.Hot{Key: rules.Key{Rule: "r", Text: "GET /s?q=2"}})
		synctest.Wait()
		l := a.localHot
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, ok := l.published[rules.Key{Rule: "r", Text: "GET /s?q=2"}]; !ok || len(l.published) != 1 || l.fleet.Instances != 2 {
			t.Errorf("published %v, fleet %+v", l.published, l.fleet)
		}
		if last := swaps[len(swaps)-1]; !slices.Equal(last, []string{"r GET /s?q=1", "r GET /s?q=2"}) {
			t.Errorf("in force %q", last)
		}
	})
}
