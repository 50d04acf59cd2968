//go:build !race

package claims

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/checks/exact"
)

// floodOfAllKinds returns requests for some keys that are hot by a rule of each kind, in a flood
// of so many values a second that come once.
func floodOfAllKinds(flood int) func(random *rand.Rand, number int64, add func(target string)) {
	once := 0
	return func(random *rand.Rand, number int64, add func(target string)) {
		for range flood / 100 {
			once++
			add(fmt.Sprintf("/s?q=once%d", once))
		}
		for range 4 {
			add(fmt.Sprintf("/p?id=%d", random.IntN(200))) // of another route, at 400/s
		}
		if at := number * 10; at > 2000 && at < 12_000 { // ms
			add("/p?id=a") // 200/s are a third of 600
			add("/p?id=a")
			for range max(1, flood/250) { // 28% of what the flood brings besides
				add("/s?q=big")
			}
		}
		for j := range 30 {
			every := int64(50) // 2/s
			if number > 1300 {
				every = 2 // 50/s
			}
			if (number+int64(j))%every == 0 {
				add(fmt.Sprintf("/s?q=jump%d", j))
			}
		}
	}
}

// allKinds returns a rule for each kind of threshold.
func allKinds() (rules []exact.RuleSpec) {
	addRule := func(kind string, n int64, change func(t *exact.ThresholdSpec)) {
		t := exact.NewThreshold(n, time.Second)
		t.Kind = kind
		change(&t)
		rules = append(rules, exact.RuleSpec{By: "all", Hot: []exact.ThresholdSpec{t}})
	}
	addRule("share", 50, func(t *exact.ThresholdSpec) { t.Factor = exact.ParseRatio("20%") })
	addRule("jump", 20, func(t *exact.ThresholdSpec) { t.Factor = exact.ParseRatio("8x") })
	addRule("top", 60, func(t *exact.ThresholdSpec) { t.Top = 3 })
	addRule("rate", 45, func(*exact.ThresholdSpec) {})
	return rules
}

// A flood of distinct values, under a budget of lines, hides no key that is hot by any kind of
// threshold, and makes none hot.
func TestAFloodBlindsNoKind(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for _, flood := range []int{0, 6000} {
		for _, network := range []Network{{Most: 20 * time.Millisecond}, {Most: 20 * time.Millisecond, Lost: 0.02, Doubled: 0.02}} {
			t.Run(fmt.Sprintf("%d/s/%v", flood, network), func(t *testing.T) { blindsNoKind(t, flood, network) })
		}
	}
}

func blindsNoKind(t *testing.T, flood int, network Network) {
	rules := allKinds()
	r, err := RunKinds(t.Context(), KindsCase{
		Rules: rules, Instances: 10, Lines: 200, Length: 18 * time.Second, Seed: 1, Network: network, Requests: floodOfAllKinds(flood),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range r.Wrong {
		t.Error(wrong)
	}
	for i, rule := range rules {
		missed := 0
		for key := range r.Exact[i] {
			if !r.Found[i][key] {
				missed++
			}
		}
		t.Logf("%s: %d of %d missed", rule.Hot[0].Name(), missed, len(r.Exact[i]))
		// The lost counts of a flood may belong to any key. They are more than the counts of
		// these jumps.
		if hidden := rule.Hot[0].Kind == "jump" && flood > 0 && network.Lost > 0; missed > 0 && !hidden {
			t.Errorf("%s: %d of %d missed", rule.Hot[0].Name(), missed, len(r.Exact[i]))
		}
	}
}

// Whatever arrives, and whatever is held back, lost or late, no key is hot by any kind of
// threshold unless it is by the exact count, and none cools earlier.
func TestRandomKinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
		c := KindsCase{
			Instances: draw("instances", 1, 5),
			Lines:     draw("bound", 0, 1) * draw("lines", 3, 60),
			Length:    time.Duration(draw("length", 10, 120)) * 100 * time.Millisecond,
			Network: Network{
				Most:    time.Duration(draw("late", 0, 1)*draw("delay", 0, 200)) * time.Millisecond,
				Lost:    float64(draw("lossy", 0, 1)*draw("lost", 0, 200)) / 1000,
				Doubled: float64(draw("doubled", 0, 100)) / 1000,
			},
			Seed: rapid.Uint64().Draw(t, "seed"),
			Tail: "/s?q=tail",
		}
		for range draw("rules", 1, 3) {
			th := exact.NewThreshold(int64(draw("least", 1, 60)), rapid.SampledFrom([]time.Duration{time.Second, 1500 * time.Millisecond, 3 * time.Second}).Draw(t, "window"))
			th.Kind = rapid.SampledFrom([]string{"rate", "share", "share", "jump", "top"}).Draw(t, "kind")
			th.Hold = time.Duration(draw("hold", 0, 2000)) * time.Millisecond
			th.CoolDown = time.Duration(draw("cool-down", 0, 1)*draw("cool", 0, 1000)) * time.Millisecond
			switch th.Kind {
			case "share":
				th.Factor = exact.ParseRatio(rapid.SampledFrom([]string{"1%", "10%", "33.3%"}).Draw(t, "share"))
			case "jump":
				th.Factor = exact.ParseRatio(rapid.SampledFrom([]string{"1.3x", "3x"}).Draw(t, "jump"))
			case "top":
				th.Top = draw("top", 1, 3)
			}
			c.Rules = append(c.Rules, exact.RuleSpec{By: rapid.SampledFrom([]string{"all", "q"}).Draw(t, "by"), Hot: []exact.ThresholdSpec{th}})
		}
		each, values, names := draw("each", 1, 12), draw("values", 2, 400), draw("names", 1, 90)
		hotFrom, hotTo, hotBy := draw("from", 0, 8000)/10, draw("to", 0, 12_000)/10, draw("hot", 1, 5)
		c.Requests = func(random *rand.Rand, number int64, add func(target string)) {
			for range random.IntN(each + 1) {
				add(fmt.Sprintf("/s?n%d=1&q=%d", random.IntN(names), random.IntN(values)))
				add(fmt.Sprintf("/s?q=%d", random.IntN(values)))
			}
			if int64(hotFrom) <= number && number < int64(hotTo) && number%5 < int64(hotBy) {
				add("/s?q=hot")
				add("/s?n0=1&q=hot")
			}
		}
		r, err := RunKinds(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range r.Wrong {
			t.Error(wrong)
		}
	})
}
