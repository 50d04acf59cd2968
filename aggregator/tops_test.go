package aggregator

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// The bounds of each second hold for the listed keys, for the others together, and for each of them,
// with a full memory as well. A key that counts most is listed although it is far below its
// threshold, and all counts are in exactly one second.
func TestTopsBoundTheCountsOfEachSecond(t *testing.T) {
	for _, window := range []time.Duration{time.Second, 10 * time.Second, 5 * time.Minute} {
		for _, keys := range []int{20, 2_000, 40_000} {
			t.Run(fmt.Sprint(window, keys), func(t *testing.T) { checkTops(t, window, keys) })
		}
	}
}

func checkTops(t *testing.T, window time.Duration, keys int) {
	random := rand.New(rand.NewPCG(1, uint64(keys)))
	ruleset := testRules(hotRule("r", 500, window))
	pane := rules.NewWindow(window).Pane
	truth := make(map[int64]map[string]int64) // by second
	var listed []Tops
	d := NewDetector(DetectorConfig{Rules: ruleset, Publisher: newRecorder(), Memory: MinMemory, Lag: 300 * time.Millisecond, OnTops: func(all []Tops) { listed = append(listed, all...) }})
	start := time.Unix(1_764_340_000, 0)
	d.Advance(start)
	const seconds = 30
	count := func(text string, n int64, when time.Time) {
		d.Count(decode.Count{Hash: testHash(text), Text: []byte(text), When: when, N: n})
		w := rules.NewWindow(window)
		second := w.Start(w.Index(when) + 1).Add(-1).Unix()
		if truth[second] == nil {
			truth[second] = make(map[string]int64)
		}
		truth[second][text] += n
	}
	for tick := range 100 * seconds {
		now := start.Add(time.Duration(tick) * 10 * time.Millisecond)
		d.Advance(now)
		for range 20 {
			late := time.Duration(random.Int64N(int64(200 * time.Millisecond)))
			count(fmt.Sprint("GET /s?k=", int(float64(keys)*random.Float64()*random.Float64()*random.Float64())), 1, now.Add(-late))
		}
		if tick%4 == 0 && tick > 2000 {
			count("GET /s?k=loud", 2, now)
		}
		if tick%100 == 99 {
			d.Refresh()
		}
	}
	end := start.Add(seconds * time.Second)
	d.Advance(end.Add(window))
	d.Refresh()
	seen, last := int64(0), int64(0)
	for _, s := range listed {
		if s.Second <= last {
			t.Fatalf("second %d after %d", s.Second, last)
		}
		last = s.Second
		if s.Second < start.Unix() || s.Second >= end.Unix() {
			continue
		}
		seen++
		inRest := int64(0)
		known := make(map[string]bool)
		for _, k := range s.Keys {
			known[k.Text] = true
			inRest += truth[s.Second][k.Text] - k.Low
			if n := truth[s.Second][k.Text]; n < k.Low || k.High != published.Unknown && n > k.High {
				t.Fatalf("second %d: %s: %d to %d, truly %d", s.Second, k.Text, k.Low, k.High, n)
			}
		}
		for text, n := range truth[s.Second] {
			if known[text] {
				continue
			}
			inRest += n
			if s.Other != published.Unknown && n > s.Other {
				t.Fatalf("second %d: %s counts %d, others at most %d", s.Second, text, n, s.Other)
			}
		}
		if inRest < s.RestLow || s.RestHigh != published.Unknown && inRest > s.RestHigh {
			t.Fatalf("second %d: the rest is %d to %d, truly %d", s.Second, s.RestLow, s.RestHigh, inRest)
		}
		if s.RestLow != inRest && keys == 20 {
			t.Errorf("second %d: rest %d, truly %d", s.Second, s.RestLow, inRest)
		}
		if truth[s.Second]["GET /s?k=loud"] > 10 && !known["GET /s?k=loud"] {
			t.Errorf("second %d: the loudest key is not listed among %d, others at most %d", s.Second, len(s.Keys), s.Other)
		}
	}
	if want := int64(seconds-6) * int64(time.Second) / int64(max(time.Second, pane)); seen < want-1 {
		t.Errorf("%d seconds were listed, want %d", seen, want)
	}
}
