package collector

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// A key's load is never below its true count in any window, and never above its count in that
// window and the previous one together.
func TestLoadIsAnUpperEstimate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		per := rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second}).Draw(t, "window")
		ps := newProfiles(ruled(over(4, per)), false)
		ps.setInstances(rapid.IntRange(0, 3).Draw(t, "instances")) // the mark stays 1
		p := &ps.all[ps.indexOf([]byte("terms"), []byte("q=1"))]
		var recents [1]recent
		var at []int64
		now := int64(1_700_000_000e9)
		for range rapid.IntRange(1, 100).Draw(t, "counts") {
			now += rapid.Int64Range(0, int64(per)/2).Draw(t, "pause")
			at = append(at, now)
			least, most := 0, 0
			for _, a := range at {
				if a > now-int64(per) {
					least++
				}
				if a > now-2*int64(per) {
					most++
				}
			}
			load := p.count(recents[:], 1, now)
			if load < float64(least) || load > float64(most) {
				t.Fatalf("the load is %v, with %d in the last window and %d in the last two", load, least, most)
			}
			if s := p.sliding(recents[:], now); s > load || s < 1 {
				t.Fatalf("%v slides, of %v", s, load)
			}
			if target := load + rapid.Float64Range(0, 9).Draw(t, "more"); float64(p.missing(recents[:], target)) < target-load {
				t.Fatalf("%d are missing from %v to %v", p.missing(recents[:], target), load, target)
			}
		}
	})
}

func TestMarks(t *testing.T) {
	ruleset := &rules.Rules{Rules: []rules.Rule{
		{ID: "a", Hot: []rules.Threshold{over(200, time.Second), over(6000, time.Minute)}, Except: []rules.Exception{
			{Values: []rules.QueryMatch{{Name: "q", Value: "vip*"}}, Rate: rules.Rate{N: 800, Per: time.Second}},
			{Values: []rules.QueryMatch{{Name: "q", Value: "free"}}, Action: rules.Allow},
		}},
		{ID: "b", Hot: []rules.Threshold{over(10, time.Second)}},
		{ID: "c", Hot: []rules.Threshold{{Kind: rules.Cost, Rate: rules.CostRate}, over(800, time.Second)}}, // no count reaches a cost
	}}
	ps := newProfiles(ruleset, false)
	for _, test := range []struct {
		instances int
		key       string
		want      string
		lowest    float64
	}{
		{1, "a q=1", "[50 1500]", 2.5},
		{20, "a q=1", "[2.5 75]", 1},
		{20, "a q=vip7", "[10 75]", 1},
		{20, "a q=free", "[]", 1},
		{20, "b q=1", "[1]", 1},
		{20, "c q=1", "[10]", 1},
		{20, "d q=1", "[]", 1},
	} {
		ps.setInstances(test.instances)
		key, _ := rules.ParseKey(test.key)
		marks := make([]float64, 0, 2)
		for _, l := range ps.all[ps.indexOf([]byte(key.Rule), []byte(key.Text))].levels {
			marks = append(marks, l.mark)
		}
		if got := fmt.Sprint(marks); got != test.want || ps.lowest != test.lowest {
			t.Errorf("%d instances, %s: marks %v, lowest %v; want %v, %v", test.instances, test.key, got, ps.lowest, test.want, test.lowest)
		}
	}
}

// All counts of candidates are sent at each flush, however many others there are. If candidates
// alone exceed the budget, their mark is doubled until they fit, and falls again later.
func TestCandidatesAreExemptUntilTheyAlonePassTheBudget(t *testing.T) {
	const budget = 50
	k := newKeys(400)
	out := newSums()
	c := newCollector(t, Config{Sink: out, Rules: ruled(over(400, time.Second)), Budget: budget}) // candidates from 100 on
	now := time.Unix(1_700_000_000, 0)
	flush := func(counts ...[3]uint64) {
		now = now.Add(2 * time.Second) // candidates are forgotten, and no count is held for so long
		clear(out.counts)
		for _, f := range counts {
			for i := f[0]; i < f[1]; i++ {
				k.add(c, int(i), f[2])
			}
		}
		c.Flush(t.Context(), now)
	}
	check := func(name string, factor, candidates, raised int64, sent int) {
		t.Helper()
		if s := c.Stats(); s.MarkFactor != factor || s.Candidates != candidates || s.MarkRaised != raised || len(out.counts) != sent {
			t.Errorf("%s: factor %d, %d candidates, raised %d times, %d keys sent; want %d, %d, %d, %d",
				name, s.MarkFactor, s.Candidates, s.MarkRaised, len(out.counts), factor, candidates, raised, sent)
		}
	}
	flush([3]uint64{0, 30, 100}, [3]uint64{30, 300, 99})
	check("others do not fit", 1, 30, 0, 30)
	flush([3]uint64{0, 60, 100}, [3]uint64{60, 70, 200})
	check("not all candidates fit", 2, 10, 1, 10)
	flush([3]uint64{0, 60, 399}, [3]uint64{60, 70, 400})
	check("more of them", 4, 10, 2, 10)
	flush([3]uint64{0, 50, 100})
	check("they fit again", 1, 50, 2, 50)
}

// The replacement of a redacted value matches no pattern of the file.
func TestRedactedValuesMatchNoException(t *testing.T) {
	ruleset := ruled(over(5, time.Second))
	ruleset.Namespace, ruleset.Redact.Names = "shop", []rules.Param{{Name: "q"}}
	ruleset.Rules[0].Except = []rules.Exception{{Values: []rules.QueryMatch{{Name: "q", Value: "*a*"}}, Action: rules.Allow}}
	c := newCollector(t, Config{Sink: &accountSums{}, Rules: ruleset})
	if p := c.profiles.all[c.profiles.indexOf([]byte("terms"), []byte("q=hmac-0eca1a85"))]; len(p.levels) != 1 {
		t.Errorf("the profile has %d levels, want 1", len(p.levels))
	}
}
